package planner

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weir/planner/sql"
)

// connectors lists the connectors, in the order in which messages name them.
func connectors() []string { return []string{"filesystem", "datagen", "blackhole"} }

// An option is one that a connector or a format takes.
type option struct {
	name  string
	alias string // Flink's name, where it differs
	read  func(value string) (string, error)
}

// optionsOf lists the options of a connector with a format.
func optionsOf(connector, format string) []option {
	switch connector {
	case "filesystem":
		list := []option{{name: "path", read: readPath}, {name: "format", read: readFormat}, {name: "rows-per-second", read: readRate}}
		if format == "csv" {
			list = append(list, csvOptions()...)
		}
		return list
	case "datagen":
		return []option{
			{name: "number-of-rows", read: readCount},
			{name: "rows-per-second", read: readRate},
			{name: "seed", read: readInteger},
		}
	}
	return nil
}

func csvOptions() []option {
	return []option{
		{name: "csv.header", read: readBoolean},
		{name: "csv.delimiter", alias: "csv.field-delimiter", read: readDelimiter},
		{name: "csv.null", alias: "csv.null-literal", read: readAny},
	}
}

// bindOptions checks a table's WITH and fills the table from it.
func bindOptions(t *table, found *problems) {
	given := map[string]*sql.Option{}
	for _, o := range t.def.Options {
		if given[o.Key.Value] != nil {
			found.add(o.Key, CodeOption, "", "the option '%s' is given twice", o.Key.Value)
			continue
		}
		given[o.Key.Value] = o
	}
	connector := given["connector"]
	if connector == nil {
		found.add(t.def.Name, CodeOption, "add WITH ('connector' = '…'): "+strings.Join(connectors(), ", "),
			"table %s has no option 'connector'", t.Name)
		return
	}
	if !slices.Contains(connectors(), connector.Value.Value) {
		found.add(connector.Value, CodeUnsupported,
			hints(suggestion(connector.Value.Value, connectors()), "the connectors are "+strings.Join(connectors(), ", ")),
			"the connector '%s' is not supported", connector.Value.Value)
		return
	}
	t.Connector = connector.Value.Value
	if format := given["format"]; format != nil {
		t.Format = format.Value.Value
	}
	t.Options = map[string]string{}
	for _, o := range t.def.Options {
		if given[o.Key.Value] == o && o != connector {
			t.setOption(o, found)
		}
	}
	t.finishOptions(given, found)
	if len(t.Options) == 0 {
		t.Options = nil // as it comes back from JSON
	}
}

// setOption checks one option and keeps it under its own name.
func (t *table) setOption(o *sql.Option, found *problems) {
	if t.Connector == "datagen" && strings.HasPrefix(o.Key.Value, "fields.") {
		t.setField(o, found)
		return
	}
	for _, known := range optionsOf(t.Connector, t.Format) {
		if o.Key.Value != known.name && (known.alias == "" || o.Key.Value != known.alias) {
			continue
		}
		value, err := known.read(o.Value.Value)
		switch {
		case err != nil:
			found.add(o.Value, CodeOption, "", "the option '%s' of table %s: %v", o.Key.Value, t.Name, err)
		case t.Options[known.name] != "" && o.Key.Value != known.name:
			found.add(o.Key, CodeOption, "", "the options '%s' and '%s' are the same", known.name, known.alias)
		case known.name != "format":
			t.Options[known.name] = value
		}
		return
	}
	t.refuseOption(o, found)
}

func (t *table) refuseOption(o *sql.Option, found *problems) {
	name := o.Key.Value
	if t.Connector == "filesystem" && t.Format == "json" && strings.HasPrefix(name, "csv.") {
		found.add(o.Key, CodeOption, "leave it out", "the option '%s' does not go with the format 'json'", name)
		return
	}
	var names []string
	for _, known := range optionsOf(t.Connector, t.Format) {
		names = append(names, known.name)
	}
	list := "the connector '" + t.Connector + "' takes no options"
	if len(names) > 0 {
		list = "the options are " + strings.Join(names, ", ")
	}
	if t.Connector == "datagen" {
		list += " and fields.<column>.kind, .start, .end, .min, .max, .values, .weights"
	}
	if hint := insteadOfOption(name); hint != "" {
		list = hint
	}
	found.add(o.Key, CodeOption, hints(suggestion(name, names), list), "the connector '%s' has no option '%s'", t.Connector, name)
}

// insteadOfOption tells what becomes of an option of Flink's connectors and formats.
func insteadOfOption(name string) string {
	switch name {
	case "csv.ignore-parse-errors", "json.ignore-parse-errors":
		return "SET 'on_row_error' = 'skip' passes over rows at fault, and counts them"
	case "json.fail-on-missing-field":
		return "leave it out: a missing field is NULL, and a row error where its column is NOT NULL"
	case "csv.quote-character", "csv.escape-character", "csv.disable-quote-character":
		return "leave it out: fields are quoted with \", written twice within"
	case "source.monitor-interval":
		return "leave it out: the files that are there when the job starts are read"
	}
	return ""
}

// finishOptions sees what is missing and derives what the plan needs.
func (t *table) finishOptions(given map[string]*sql.Option, found *problems) {
	if t.Connector == "filesystem" {
		for _, required := range []struct{ name, hint string }{
			{"path", "add 'path' = '…': a file, a folder or a glob"},
			{"format", "add 'format' = 'csv' or 'json'"},
		} {
			if given[required.name] == nil {
				found.add(t.def.Name, CodeOption, required.hint, "table %s has no option '%s'", t.Name, required.name)
			}
		}
		t.bounded = true
	}
	if t.Connector == "datagen" {
		_, t.bounded = t.Options["number-of-rows"]
		t.finishFields(found)
	}
	t.rowsPerSecond, _ = strconv.ParseFloat(t.Options["rows-per-second"], 64) // checked by readRate; absent is 0
}

// optionNode is the node of an option's value, or the table's name without one.
func (t *table) optionNode(name string) sql.Node {
	for _, o := range t.def.Options {
		if o.Key.Value == name {
			return o.Value
		}
	}
	return t.def.Name
}

func readAny(v string) (string, error) { return v, nil }

func readPath(v string) (string, error) {
	if scheme, rest, ok := strings.Cut(v, ":/"); ok && len(scheme) > 1 && !strings.ContainsAny(scheme, "/. ") { // one letter is a drive
		if scheme != "file" {
			return "", fmt.Errorf("paths of '%s' are not supported: write the path of a file or a folder", scheme)
		}
		if rest = strings.TrimPrefix(rest, "/"); !strings.HasPrefix(rest, "/") {
			rest = "/" + rest
		}
		v = rest
	}
	if strings.TrimSpace(v) == "" {
		return "", fmt.Errorf("a path cannot be empty")
	}
	return v, nil
}

func readFormat(v string) (string, error) {
	if v != "csv" && v != "json" {
		return "", fmt.Errorf("the format '%s' is not supported; the formats are csv and json", v)
	}
	return v, nil
}

func readBoolean(v string) (string, error) {
	if s := strings.ToLower(v); s == "true" || s == "false" {
		return s, nil
	}
	return "", fmt.Errorf("'%s' is neither true nor false", v)
}

func readDelimiter(v string) (string, error) {
	if v == `\t` {
		v = "\t"
	}
	if len(v) != 1 || v[0] >= 0x80 || strings.ContainsAny(v, "\"\r\n\x00") {
		return "", fmt.Errorf("'%s' is not one ASCII character other than a quote or a line end", v)
	}
	return v, nil
}

func readCount(v string) (string, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return "", fmt.Errorf("'%s' is not a whole number from 0", v)
	}
	return strconv.FormatInt(n, 10), nil
}

func readInteger(v string) (string, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return "", fmt.Errorf("'%s' is not a whole number", v)
	}
	return strconv.FormatInt(n, 10), nil
}

func readRate(v string) (string, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f <= 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", fmt.Errorf("'%s' is not a number of rows above 0", v)
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}
