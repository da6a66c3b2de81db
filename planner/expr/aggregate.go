package expr

import (
	"slices"
	"strings"
	"sync"
)

// An AggregateFunction is an aggregate of the language.
type AggregateFunction struct {
	Name    AggFunc
	SQL     string   // the name in SQL, upper case
	Aliases []string // other names in SQL, upper case
	Syntax  string   // how a call is written where that is not SQL(x)
	// Kinds are those of the argument; empty: any type.
	Kinds []Kind
	// Distinct: DISTINCT may stand before the argument.
	Distinct bool
	// Changing: it can be kept over rows that are taken back.
	Changing bool
	Result   string // the type of the result, in words
	Errors   string // when a row error is raised; empty: never
	Doc      string
	Examples []Example // each over rows that it makes with VALUES
}

// AggregateFunctions lists the aggregates, in the order of the documentation. All skip
// NULL, and all but the counts are NULL where there was nothing else.
func AggregateFunctions() []AggregateFunction {
	numeric := []Kind{Int, BigInt, Decimal, Double}
	ordered := []Kind{Int, BigInt, Decimal, Double, String, Bytes, Date, Timestamp, TimestampLTZ, Interval, MonthInterval}
	example := func(call, value string) []Example {
		return []Example{{"SELECT " + call + " FROM (VALUES (1), (2), (2), (NULL)) AS t (x)", value}}
	}
	return []AggregateFunction{
		{
			Name: CountStar, SQL: "COUNT", Syntax: "COUNT(*)", Changing: true, Result: "BIGINT", Doc: "The number of rows.", Examples: example("COUNT(*)", "4"),
		},
		{
			Name: Count, SQL: "COUNT", Syntax: "COUNT([DISTINCT] x)", Distinct: true, Changing: true, Result: "BIGINT", Doc: "The number of rows where x is not NULL, or of distinct values of x.",
			Examples: append(example("COUNT(x)", "3"), example("COUNT(DISTINCT x)", "2")...),
		},
		{
			Name: Sum, SQL: "SUM", Syntax: "SUM([DISTINCT] x)", Kinds: numeric, Distinct: true, Changing: true, Errors: "a sum that the result's type does not hold",
			Result: "BIGINT of INT, DECIMAL(38, 0) of BIGINT, DECIMAL(38, s) of DECIMAL(p, s), DOUBLE of DOUBLE", Doc: "The sum.", Examples: example("SUM(x)", "5"),
		},
		{
			Name: Min, SQL: "MIN", Kinds: ordered, Distinct: true, Changing: true, Result: "the argument's type", Doc: "The least value; of every type but BOOLEAN.", Examples: example("MIN(x)", "1"),
		},
		{
			Name: Max, SQL: "MAX", Kinds: ordered, Distinct: true, Changing: true, Result: "the argument's type", Doc: "The greatest value; of every type but BOOLEAN.", Examples: example("MAX(x)", "2"),
		},
		{
			Name: Avg, SQL: "AVG", Syntax: "AVG([DISTINCT] x)", Kinds: numeric, Distinct: true, Changing: true, Result: "DECIMAL(38, max(s, 6)) of DECIMAL(p, s), else DOUBLE",
			Doc: "The mean, from the exact sum.", Examples: example("AVG(DISTINCT x)", "1.5"),
		},
		{
			Name: BoolAnd, SQL: "BOOL_AND", Aliases: []string{"EVERY"}, Kinds: []Kind{Boolean}, Distinct: true, Changing: true, Result: "BOOLEAN",
			Doc: "Whether all values are true.", Examples: example("BOOL_AND(x > 1)", "false"),
		},
		{
			Name: BoolOr, SQL: "BOOL_OR", Kinds: []Kind{Boolean}, Distinct: true, Changing: true, Result: "BOOLEAN",
			Doc: "Whether some value is true.", Examples: example("BOOL_OR(x > 1)", "true"),
		},
		{
			Name: ApproxCountDistinct, SQL: "APPROX_COUNT_DISTINCT", Result: "BIGINT", Doc: "The number of distinct values within about 1 %, in little memory; not over rows that are taken back.",
			Examples: example("APPROX_COUNT_DISTINCT(x)", "2"),
		},
	}
}

var aggregates = sync.OnceValue(AggregateFunctions)

// FindAggregate gives the aggregate that has a name in SQL, in any case, or nil; of
// COUNT that of an argument. What it points to is shared, and not to be changed.
func FindAggregate(name string) *AggregateFunction {
	name = strings.ToUpper(name)
	list := aggregates()
	i := slices.IndexFunc(list, func(a AggregateFunction) bool {
		return a.Name != CountStar && (a.SQL == name || slices.Contains(a.Aliases, name))
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}
