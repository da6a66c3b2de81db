package source

import (
	"fmt"
	"strconv"

	"weir"
	"weir/exec/batch"
	"weir/planner/expr"
)

// options reads a table's options. The planner has checked them; what it let pass and
// is wrong all the same is kept as the first error.
type options struct {
	table  string
	values map[string]string
	err    error
}

func (o *options) fail(name, format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%w: table %s: option '%s': %s", weir.ErrInvalid, o.table, name, fmt.Sprintf(format, args...))
	}
}

func (o *options) text(name, absent string) string {
	if v, ok := o.values[name]; ok {
		return v
	}
	return absent
}

func (o *options) int64(name string, absent int64) int64 {
	v, ok := o.values[name]
	if !ok {
		return absent
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		o.fail(name, "%q is not a whole number", v)
	}
	return n
}

func (o *options) float(name string, absent float64) float64 {
	v, ok := o.values[name]
	if !ok {
		return absent
	}
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || f-f != 0 { // NaN and the infinities are no bounds
		o.fail(name, "%q is not a number", v)
	}
	return f
}

// time reads a date, a time or an interval of a column's type, in its units.
func (o *options) time(name string, t expr.Type, absent string) int64 {
	text := o.text(name, absent)
	n, why := readTime(t, []byte(text))
	if why != "" {
		o.fail(name, "%q is not %s: %s", text, article(t), why)
	}
	return n
}

// decimal reads a DECIMAL as its unscaled value, of 64 bits.
func (o *options) decimal(name string, t expr.Type, absent int64) int64 {
	text, ok := o.values[name]
	if !ok {
		return absent
	}
	n, err := unscaled(text, t)
	if err != nil {
		o.fail(name, "%q is not %s: %v", text, article(t), err)
	}
	return n
}

func unscaled(text string, t expr.Type) (int64, error) {
	d, err := batch.ParseDecimal(text, t.Scale)
	if err != nil {
		return 0, err
	}
	n, ok := d.Int64()
	if !ok || !d.Fits(min(t.Precision, 18)) {
		return 0, fmt.Errorf("it has more digits than fit, or than 18")
	}
	return n, nil
}

// csv reads the options of the CSV format.
func (o *options) csv() csvOptions {
	c := csvOptions{delimiter: ',', null: o.text("csv.null", "")}
	switch d := o.text("csv.delimiter", ","); {
	case d == `\t`:
		c.delimiter = '\t'
	case len(d) == 1 && d[0] != '"' && d[0] != '\n' && d[0] != '\r':
		c.delimiter = d[0]
	default:
		o.fail("csv.delimiter", "%q is not one character other than a quote or a line end", d)
	}
	switch h := o.text("csv.header", "false"); h {
	case "true", "false":
		c.header = h == "true"
	default:
		o.fail("csv.header", "%q is not true or false", h)
	}
	return c
}
