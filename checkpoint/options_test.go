package checkpoint

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir"
)

func TestOptionsDefaults(t *testing.T) {
	t.Parallel()
	const want = `{"interval":"10s","mode":"exactly_once","timeout":"10m0s","min_pause":"0s","max_concurrent":1,` +
		`"retention":"retain_on_cancellation","num_retained":3,"tolerable_failures":0}`
	for _, raw := range []string{"", "null", "{}", want} {
		o, err := ParseOptions(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(DefaultOptions(), o); diff != "" {
			t.Errorf("%q:\n%s", raw, diff)
		}
		if got, _ := json.Marshal(o); string(got) != want {
			t.Errorf("%s", got)
		}
	}
	if err := (Options{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

func TestOptionsParse(t *testing.T) {
	t.Parallel()
	got, err := ParseOptions([]byte(`{"interval":"0","timeout":"60s","min_pause":"500ms","max_concurrent":3,
		"retention":"delete_on_cancellation","num_retained":2,"tolerable_failures":4,"mode":"at_least_once"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Options{0, AtLeastOnce, time.Minute, 500 * time.Millisecond, 3, DeleteOnCancellation, 2, 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	back, _ := json.Marshal(got)
	var again Options
	if err := json.Unmarshal(back, &again); err != nil || again != got {
		t.Errorf("%s: %+v, %v", back, again, err)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"interval":10}`:         `invalid: checkpoint.interval is 10; give a string such as "10s"`,
		`{"interval":"10"}`:       `invalid: checkpoint.interval is "10"; give a duration such as "500ms", "10s" or "10m"`,
		`{"mode":"twice"}`:        `invalid: checkpoint.mode is "twice"; give exactly_once or at_least_once`,
		`{"max_concurrent":17}`:   `invalid: checkpoint.max_concurrent is 17; give 1 to 16`,
		`{"max_concurrent":null}`: `invalid: checkpoint.max_concurrent is null; give a whole number`,
		`{"retention":"keep"}`:    `invalid: checkpoint.retention is "keep"; give retain_on_cancellation, delete_on_cancellation or none`,
		`{"num_retained":-1,"intervall":1,"interval":"-1s","timeout":"-1s","tolerable_failures":1.5}`: `invalid: checkpoint.interval is -1s; give 0 (none) or more; ` +
			`checkpoint.timeout is -1s; give 1ms or more; checkpoint.num_retained is -1; give 1 or more; ` +
			`checkpoint.tolerable_failures is 1.5; give a whole number; checkpoint.intervall is unknown; the fields are ` +
			`interval, mode, timeout, min_pause, max_concurrent, retention, num_retained, tolerable_failures`,
	} {
		_, err := ParseOptions([]byte(raw))
		var list *OptionsError
		if err == nil || err.Error() != want || !errors.Is(err, weir.ErrInvalid) || !errors.As(err, &list) {
			t.Errorf("%s:\n got %v\nwant %s", raw, err, want)
		}
	}
	if _, err := ParseOptions([]byte(`[1]`)); !errors.Is(err, weir.ErrInvalid) {
		t.Error(err)
	}
}

func TestOptionsSet(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	for _, s := range [][2]string{{"interval", "1s"}, {"num_retained", "5"}, {"retention", "none"}} {
		var err error
		if o, err = o.Set(s[0], s[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := DefaultOptions()
	want.Interval, want.NumRetained, want.Retention = time.Second, 5, RetainNone
	if diff := cmp.Diff(want, o); diff != "" {
		t.Error(diff)
	}
	for field, value := range map[string]string{"interval": "soon", "num_retained": "many", "nothing": "1", "max_concurrent": "17"} {
		if _, err := o.Set(field, value); !errors.Is(err, weir.ErrInvalid) {
			t.Errorf("%s=%s: %v", field, value, err)
		}
	}
}
