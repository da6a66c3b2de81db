package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// A Kind is a SQL type without its parameters.
type Kind uint8

// The kinds of types. Their names, not their numbers, are stored.
const (
	Null          Kind = iota // the type of a bare NULL; never a column's
	Boolean                   // BOOLEAN
	Int                       // INT: 32 bits, kept in an int64
	BigInt                    // BIGINT: 64 bits
	Double                    // DOUBLE: IEEE 754, 64 bits
	Decimal                   // DECIMAL(p,s), p ≤ 38: a 128-bit unscaled integer
	String                    // STRING: valid UTF-8
	TimestampLTZ              // TIMESTAMP_LTZ(p), p ≤ 6: microseconds since 1970 UTC
	Bytes                     // BYTES
	Date                      // DATE: days since 1970-01-01
	Timestamp                 // TIMESTAMP(p), p ≤ 6: microseconds since 1970-01-01T00:00:00 on a clock of no zone
	Interval                  // INTERVAL DAY TO SECOND: microseconds
	MonthInterval             // INTERVAL YEAR TO MONTH: months
)

// A Type is a SQL type. The zero value is the type of NULL.
type Type struct {
	Kind      Kind
	Precision int // Decimal: digits; Timestamp, TimestampLTZ: fractional digits
	Scale     int // Decimal: digits behind the point
}

// DecimalType returns DECIMAL(38, scale), the type of sums.
func DecimalType(scale int) Type { return Type{Kind: Decimal, Precision: 38, Scale: scale} }

// String gives the SQL spelling, such as "DECIMAL(38, 0)".
func (t Type) String() string {
	switch t.Kind {
	case Null:
		return "NULL"
	case Boolean:
		return "BOOLEAN"
	case Int:
		return "INT"
	case BigInt:
		return "BIGINT"
	case Double:
		return "DOUBLE"
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Precision, t.Scale)
	case String:
		return "STRING"
	case TimestampLTZ:
		return fmt.Sprintf("TIMESTAMP_LTZ(%d)", t.Precision)
	case Bytes:
		return "BYTES"
	case Date:
		return "DATE"
	case Timestamp:
		return fmt.Sprintf("TIMESTAMP(%d)", t.Precision)
	case Interval:
		return "INTERVAL DAY TO SECOND"
	case MonthInterval:
		return "INTERVAL YEAR TO MONTH"
	}
	return fmt.Sprintf("type(%d)", t.Kind)
}

// MarshalText stores a type by its SQL spelling.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (t *Type) UnmarshalText(b []byte) error {
	name, args, _ := strings.Cut(strings.TrimSuffix(string(b), ")"), "(")
	var params [2]int
	for i, a := range strings.SplitN(args, ",", 2) {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		n, err := strconv.Atoi(a)
		if err != nil {
			return fmt.Errorf("type %q: %w", b, err)
		}
		params[i] = n
	}
	for k := Null; k <= MonthInterval; k++ {
		full := Type{Kind: k, Precision: params[0], Scale: params[1]}
		if base, _, _ := strings.Cut(full.String(), "("); base == name {
			*t = full
			return nil
		}
	}
	return fmt.Errorf("unknown type %q", b)
}

// Numeric reports whether t is INT, BIGINT, DOUBLE or DECIMAL.
func (t Type) Numeric() bool {
	return t.Kind == Int || t.Kind == BigInt || t.Kind == Double || t.Kind == Decimal
}
