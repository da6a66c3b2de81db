package expr

import (
	"slices"
	"strings"
	"sync"
)

// A Function is a scalar function of the language: what users call, and what Expr.Func
// names. The table of them is the source of the documentation: its texts are for users.
type Function struct {
	Name    string   // in Expr.Func; lower case
	SQL     string   // the name in SQL, upper case
	Aliases []string // other names in SQL, upper case
	Group   string   // of the documentation: "conditions", "strings", "numbers", "times", "JSON"
	// Syntax is how a call is written where that is not SQL(parameters).
	Syntax     string
	Signatures []Signature
	Nulls      Nulls
	// Errors says when a row error is raised; empty: never.
	Errors string
	// Special functions are bound to operations other than OpCall, or only in part.
	Special bool
	// Volatile functions read the clock: their value is that of the moment when a batch is
	// processed, and is refused where a row may be taken back.
	Volatile bool
	// Zoned functions go by the job's time zone: Expr.Zone.
	Zoned    bool
	Doc      string // one sentence
	Examples []Example
}

// A Signature is one combination of arguments that a function takes. A call's arguments
// have exactly the kinds of one of its function's signatures; of Any they have one
// common type.
type Signature struct {
	Params   []Param
	Variadic bool // the last parameter may be repeated, or left out
	Rule     Rule
	Result   Type // of Fixed
}

// A Param is a parameter. Kind Null stands for any type: all arguments of such
// parameters are brought to one, as the branches of CASE are.
type Param struct {
	Name     string
	Kind     Kind
	Constant bool // the argument has to be a literal: a unit, a number of digits
}

// A Rule says how the type of a result follows from the arguments.
type Rule uint8

// The rules.
const (
	Fixed     Rule = iota // Signature.Result
	Same                  // the type of the first argument that is not constant
	Rounded               // DECIMAL(38, n): n is the constant second argument, at least 0
	Whole                 // DECIMAL(38, 0)
	Precise               // Signature.Result with the constant second argument as its precision
	Extracted             // DECIMAL(38, 6) for SECOND and EPOCH, DECIMAL(38, 3) for MILLISECOND, else BIGINT
)

// Nulls says what NULL arguments do.
type Nulls uint8

// What NULL arguments do.
const (
	Strict    Nulls = iota // the result is NULL if any argument is
	SkipNulls              // NULL arguments do not count; see the function's text
)

// An Example is a call and the text of its value; NULL is "NULL".
type Example struct{ SQL, Value string }

// Functions lists the scalar functions, in the order of the documentation.
func Functions() []Function {
	return slices.Concat(conditions(), texts(), numbers(), times())
}

var index = sync.OnceValue(func() map[string]*Function {
	list, m := Functions(), map[string]*Function{}
	for i := range list {
		f := &list[i]
		if f.Name != "" {
			m[f.Name] = f
		}
		for _, name := range append([]string{f.SQL}, f.Aliases...) {
			if m[name] == nil {
				m[name] = f
			}
		}
	}
	return m
})

// FindFunction gives the function that has a name in SQL, in any case, or nil. What it
// points to is shared, and not to be changed.
func FindFunction(name string) *Function { return index()[strings.ToUpper(name)] }

// FunctionOf gives the function that Expr.Func names, or nil.
func FunctionOf(name string) *Function { return index()[name] }

// CanFail reports whether e may raise a row error.
func CanFail(e *Expr) bool {
	switch e.Op {
	case OpAdd, OpSub, OpMul, OpDiv, OpMod, OpNeg:
		if e.Type.Kind != Double {
			return true
		}
	case OpConvert, OpCast:
		if !Fits(e.Args[0].Type, e.Type) {
			return true
		}
	case OpCall:
		if callFails(e) {
			return true
		}
	}
	return slices.ContainsFunc(e.Args, CanFail)
}

// callFails reports whether a call may fail of itself: a constant pattern has been
// checked when it was bound.
func callFails(e *Expr) bool {
	f := FunctionOf(e.Func)
	if f == nil || f.Errors == "" {
		return f == nil
	}
	switch e.Func {
	case "like", "ilike":
		return e.Args[1].Op != OpLiteral || e.Args[2].Op != OpLiteral
	case "regexp_extract", "date_format", "json_value":
		return e.Args[1].Op != OpLiteral
	}
	return true
}

// Fits reports whether every value of one type has its like in the other.
func Fits(from, to Type) bool {
	if from == to {
		return true
	}
	whole := map[Kind]int{Int: 10, BigInt: 19, Decimal: from.Precision - from.Scale}[from.Kind]
	switch to.Kind {
	case String:
		return true
	case Double:
		return from.Numeric()
	case BigInt:
		return from.Kind == Int
	case Int:
		return from.Kind == Boolean
	case Boolean:
		return from.Kind == Int
	case Decimal:
		return whole > 0 && whole+to.Scale <= to.Precision && from.Scale <= to.Scale
	case Timestamp:
		return from.Kind == Date || from.Kind == Timestamp && from.Precision <= to.Precision
	case TimestampLTZ:
		return from.Kind == TimestampLTZ && from.Precision <= to.Precision
	case Date:
		return from.Kind == Timestamp
	}
	return from.Kind == Null
}

// Volatile reports whether e reads the clock.
func Volatile(e *Expr) bool {
	if f := FunctionOf(e.Func); e.Op == OpCall && f != nil && f.Volatile {
		return true
	}
	return slices.ContainsFunc(e.Args, Volatile)
}

// Constructors of the tables' rows.

func param(name string, k Kind) Param    { return Param{Name: name, Kind: k} }
func constant(name string, k Kind) Param { return Param{Name: name, Kind: k, Constant: true} }

func gives(k Kind, params ...Param) Signature {
	return Signature{Params: params, Result: Type{Kind: k}}
}

func rule(r Rule, params ...Param) Signature { return Signature{Params: params, Rule: r} }

// each makes one signature for every kind of the last parameter, named name.
func each(r Rule, before []Param, name string, kinds ...Kind) []Signature {
	list := make([]Signature, len(kinds))
	for i, k := range kinds {
		list[i] = Signature{Params: append(slices.Clone(before), param(name, k)), Rule: r}
	}
	return list
}

// Gives says in words what a call of a signature gives.
func (s Signature) Gives() string {
	switch s.Rule {
	case Same:
		if len(s.Params) > 0 && !slices.ContainsFunc(s.Params, func(p Param) bool { return p.Kind == Null }) {
			for _, p := range s.Params {
				if !p.Constant {
					return kindName(p.Kind)
				}
			}
		}
		return "the type of x"
	case Rounded:
		return "DECIMAL(38, n)"
	case Whole:
		return "DECIMAL(38, 0)"
	case Extracted:
		return "BIGINT; DECIMAL(38, 6) for SECOND and EPOCH, DECIMAL(38, 3) for MILLISECOND"
	}
	return s.Result.String()
}

// Usage shows how a function is called.
func (f *Function) Usage() string {
	if f.Syntax != "" {
		return f.Syntax
	}
	var list []string
	for i := 0; i < len(f.Signatures); i++ {
		params := make([]string, len(f.Signatures[i].Params))
		for j, p := range f.Signatures[i].Params {
			params[j] = p.Name
			if p.Kind != Null {
				params[j] += " " + kindName(p.Kind)
			}
		}
		last := i // the following ones that differ in the last parameter only
		for last+1 < len(f.Signatures) && len(params) > 0 && len(f.Signatures[last+1].Params) == len(params) &&
			slices.Equal(f.Signatures[last+1].Params[:len(params)-1], f.Signatures[i].Params[:len(params)-1]) {
			last++
			params[len(params)-1] += " or " + kindName(f.Signatures[last].Params[len(params)-1].Kind)
		}
		call := f.SQL + "(" + strings.Join(params, ", ")
		if f.Signatures[i].Variadic {
			call += ", …"
		}
		list = append(list, call+")")
		i = last
	}
	return strings.Join(list, ", ")
}

func kindName(k Kind) string {
	name, _, _ := strings.Cut(Type{Kind: k}.String(), "(")
	return name
}
