package expr

// An Op says what a node of an expression computes.
type Op string

// The operations. Operands have the types that the binder left: conversions are
// explicit Convert nodes, so both sides of arithmetic and comparison agree in type
// (two DECIMALs agree in scale).
const (
	OpColumn  Op = "column"  // the input's column Column
	OpLiteral Op = "literal" // Literal; nil is NULL
	OpConvert Op = "convert" // Args[0] to Type; exact or widening: INT→BIGINT→DECIMAL→DOUBLE, NULL→any

	// DECIMAL: the operands of + - / % and comparisons agree in scale; those of * need
	// not, and the product's scale (the node's Type) is the sum of theirs. The quotient's
	// scale is at least 6, its last digit rounded half away from zero.
	OpAdd Op = "+" // INT, BIGINT, DOUBLE, DECIMAL; integer and decimal overflow is a row error
	OpSub Op = "-"
	OpMul Op = "*"
	OpDiv Op = "/" // integers truncate; integer and decimal division by zero is a row error
	OpMod Op = "%" // sign of the dividend; not for DOUBLE
	OpNeg Op = "neg"

	OpEq Op = "=" // NULL when an operand is; PostgreSQL's order (NaN greatest, equal to itself; -0 = 0)
	OpNe Op = "<>"
	OpLt Op = "<"
	OpLe Op = "<="
	OpGt Op = ">"
	OpGe Op = ">="

	OpAnd       Op = "and" // three-valued
	OpOr        Op = "or"
	OpNot       Op = "not"
	OpIn        Op = "in" // Args[0] in Args[1:]; three-valued
	OpIsNull    Op = "is null"
	OpIsNotNull Op = "is not null"

	OpDistinct    Op = "is distinct from" // never NULL: NULL is not distinct from NULL
	OpNotDistinct Op = "is not distinct from"

	// Args: condition, value, condition, value, …, and the value of ELSE. A value is
	// computed only for the rows that take it, a condition only where those before it
	// are not true.
	OpCase Op = "case"
	// The first of Args that is not NULL; each is computed only where those before are NULL.
	OpCoalesce Op = "coalesce"
	// Args[0] as Type, as CAST: a value that does not fit is a row error; with TRY_CAST NULL.
	OpCast    Op = "cast"
	OpTryCast Op = "try_cast"
	// A function of the table (Functions): Func of Args, which have exactly the types of
	// one of its signatures.
	OpCall Op = "call"
)

// An Expr is a node of a typed expression tree. It is stored as JSON inside the
// plan. Trees are not changed once bound; rewriting copies.
type Expr struct {
	Op      Op       `json:"op"`
	Type    Type     `json:"type"`
	Column  int      `json:"column,omitempty"` // OpColumn: index into the input's columns
	Literal *Literal `json:"literal,omitempty"`
	Args    []*Expr  `json:"args,omitempty"`
	Func    string   `json:"func,omitempty"` // OpCall: the function's name in the table
	// Zone is the time zone by whose clock casts and functions over TIMESTAMP_LTZ work,
	// by its IANA name; empty: UTC, or it does not matter.
	Zone string `json:"zone,omitempty"`
	// Text is the SQL this node came from, for row errors and plans ("price * qty").
	Text string `json:"text,omitempty"`
}

// A Literal is a constant; the field that Type's kind names is set: Bool for
// BOOLEAN; Int for INT, BIGINT, dates, times and intervals, in the units of their
// kinds; Double ("NaN", "Infinity" and "-Infinity" included, hence text); Decimal, the
// exact decimal digits; String, and for BYTES their hexadecimal digits in it.
type Literal struct {
	Bool    bool   `json:"bool,omitempty"`
	Int     int64  `json:"int,omitempty"`
	Double  string `json:"double,omitempty"`
	Decimal string `json:"decimal,omitempty"`
	String  string `json:"string,omitempty"`
}

// An Aggregate is one aggregate call of a grouping.
type Aggregate struct {
	Func AggFunc `json:"func"`
	// Arg is the input's column that it reads; -1 for COUNT(*).
	Arg int `json:"arg"`
	// Type is the type of the result; ArgType that of the argument.
	Type    Type `json:"type"`
	ArgType Type `json:"arg_type"`
	// Distinct: equal values of the argument count once.
	Distinct bool `json:"distinct,omitempty"`
	// Text is the normalised expression ("sum(price)"): it names the state.
	Text string `json:"text"`
}

// An AggFunc names an aggregate function.
type AggFunc string

// The aggregate functions.
const (
	CountStar AggFunc = "count(*)" // BIGINT
	Count     AggFunc = "count"    // BIGINT; skips NULL
	Sum       AggFunc = "sum"      // NULL when it saw only NULL; accumulates in 128 bits or compensated doubles
	Min       AggFunc = "min"      // of every type with an order: PostgreSQL's
	Max       AggFunc = "max"
	Avg       AggFunc = "avg"      // DOUBLE of integers and doubles, DECIMAL(38, max(s, 6)) of decimals; from the exact sum
	BoolAnd   AggFunc = "bool_and" // NULL when it saw only NULL
	BoolOr    AggFunc = "bool_or"
	// ApproxCountDistinct is BIGINT; a HyperLogLog sketch, within about 1 %. Only over
	// rows that are not taken back.
	ApproxCountDistinct AggFunc = "approx_count_distinct"
)

// Partial returns the types of the columns in which a partial aggregate travels from
// the local to the global phase:
//
//	count(*), count         a BIGINT
//	sum of exact numbers    the 128-bit sum, NULL when it saw no value
//	sum of DOUBLE           the sum, its compensation, and as BIGINT the numbers of values,
//	                        of NaN, +Inf and -Inf among them
//	avg                     those of the sum, then the number of values as BIGINT
//	min, max                the value, NULL when it saw none
//	bool_and, bool_or       the numbers of trues and of falses as BIGINT
//	approx_count_distinct   the sketch as BYTES
//
// DISTINCT aggregates have none: they are computed in one phase.
func (a Aggregate) Partial() []Type {
	number := Type{Kind: BigInt}
	switch a.Func {
	case Sum:
		return a.partialSum()
	case Avg:
		return append(a.partialSum(), number)
	case Min, Max:
		return []Type{a.ArgType}
	case BoolAnd, BoolOr:
		return []Type{number, number}
	case ApproxCountDistinct:
		return []Type{{Kind: Bytes}}
	}
	return []Type{number}
}

func (a Aggregate) partialSum() []Type {
	if a.ArgType.Kind == Double {
		d, n := Type{Kind: Double}, Type{Kind: BigInt}
		return []Type{d, d, n, n, n, n}
	}
	return []Type{DecimalType(a.ArgType.Scale)}
}
