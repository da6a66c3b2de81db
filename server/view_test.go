package server

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestQuoteNumbers(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{}`:                                      `{}`,
		`{"n":1,"s":"9007199254740993"}`:          `{"n":1,"s":"9007199254740993"}`,
		`{"n":9007199254740992}`:                  `{"n":9007199254740992}`,
		`{"n":9007199254740993}`:                  `{"n":"9007199254740993"}`,
		`{"n":-9223372036854775808,"b":true}`:     `{"n":"-9223372036854775808","b":true}`,
		`{"a\"1":12345678901234567890,"b":null}`:  `{"a\"1":"12345678901234567890","b":null}`,
		`{"d":0.1234567890123456}`:                `{"d":0.1234567890123456}`,
		`{"d":1.2345678901234567e+300}`:           `{"d":1.2345678901234567e+300}`,
		`{"d":-123456789012345678.90,"e":0.0001}`: `{"d":"-123456789012345678.90","e":0.0001}`,
		`{"k":"\\","n":99999999999999999}`:        `{"k":"\\","n":"99999999999999999"}`,
	} {
		if got := string(quoteNumbers(json.RawMessage(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func TestQuoteNumbersKeepsEverythingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		row := map[string]any{
			rapid.String().Draw(t, "name"): rapid.String().Draw(t, "text"),
			"i":                            rapid.Int64().Draw(t, "int"),
			"f":                            rapid.Float64Range(-1e30, 1e30).Draw(t, "float"),
		}
		in, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(quoteNumbers(in), &got); err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		for name, value := range row {
			text, isText := value.(string)
			if _, isNumber := got[name].(float64); isText && got[name] != text || !isText && !isNumber && got[name] == nil {
				t.Fatalf("%s: %q became %v", in, name, got[name])
			}
		}
	})
}
