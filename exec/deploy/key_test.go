package deploy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir"
	"weir/exec/deploy"
)

// What changes a worker has a name that tells one instance of it from another; what reads
// has none.
func TestKeyOf(t *testing.T) {
	t.Parallel()
	got := map[string]string{}
	for name, m := range messages() {
		key, ok := deploy.KeyOf(name, m)
		if ok && (key.Job == "" || key.Attempt == weir.AttemptID{} || key.Kind != name) {
			t.Errorf("%s: %+v", name, key)
		}
		if ok {
			got[name] = key.ID
		}
	}
	want := map[string]string{"deploy": "", "trigger": "6", "commit": "6", "close": "", "stop": "", "commit_only": "6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
