package exec

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimestamps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		micros := rapid.Int64Range(-62167219200000000, 253402300799999999).Draw(t, "micros")
		want := time.UnixMicro(micros).UTC().Format("2006-01-02T15:04:05.999999Z")
		if got := string(appendTimestamp(nil, micros)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
