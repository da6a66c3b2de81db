package checkpoint

import (
	"fmt"
	"regexp"

	"weir"
)

// CheckSavepointName says what is wrong with a savepoint's name, as weir.ErrInvalid.
func CheckSavepointName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`).MatchString(name) {
		return fmt.Errorf("%w: savepoint name %q: give 1 to 63 of [a-z0-9_-], the first a letter or digit", weir.ErrInvalid, name)
	}
	return nil
}
