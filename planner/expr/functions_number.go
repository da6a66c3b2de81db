package expr

// numbers are the functions of numbers.
func numbers() []Function {
	numeric := []Kind{Int, BigInt, Decimal, Double}
	same := each(Same, nil, "x", numeric...)
	whole := []Signature{rule(Same, param("x", Int)), rule(Same, param("x", BigInt)), rule(Whole, param("x", Decimal)), rule(Same, param("x", Double))}
	rounded := append([]Signature(nil), whole...)
	rounded = append(rounded, rule(Rounded, param("x", Decimal), constant("digits", Int)))
	return []Function{
		{
			Name: "abs", SQL: "ABS", Group: "numbers", Signatures: same, Errors: "the least INT or BIGINT, which has no positive counterpart",
			Doc: "The absolute value.", Examples: []Example{{"ABS(-5)", "5"}, {"ABS(-1.50)", "1.50"}},
		},
		{
			Name: "sign", SQL: "SIGN", Group: "numbers", Signatures: same, Doc: "-1, 0 or 1; of DOUBLE's NaN 0.", Examples: []Example{{"SIGN(-5)", "-1"}},
		},
		{
			Name: "ceil", SQL: "CEIL", Aliases: []string{"CEILING"}, Group: "numbers", Signatures: whole, Errors: "a DECIMAL of 38 digits that grows by one",
			Doc: "The least whole number that is not less; for times see CEIL(time TO unit).", Examples: []Example{{"CEIL(1.2)", "2"}, {"CEIL(-1.2)", "-1"}},
		},
		{
			Name: "floor", SQL: "FLOOR", Group: "numbers", Signatures: whole, Errors: "a DECIMAL of 38 digits that grows by one",
			Doc: "The greatest whole number that is not greater; for times see FLOOR(time TO unit).", Examples: []Example{{"FLOOR(1.8)", "1"}, {"FLOOR(-1.2)", "-2"}},
		},
		{
			Name: "round", SQL: "ROUND", Group: "numbers", Signatures: rounded, Errors: "a result of more than 38 digits",
			Doc:      "The nearest number with the given digits behind the point, none if they are not given; a negative number of digits rounds before the point. DECIMAL rounds halves away from zero, DOUBLE to even.",
			Examples: []Example{{"ROUND(2.5)", "3"}, {"ROUND(1234.567, 1)", "1234.6"}, {"ROUND(1250, -2)", "1300"}, {"ROUND(CAST(2.5 AS DOUBLE))", "2"}},
		},
		{
			Name: "truncate", SQL: "TRUNCATE", Aliases: []string{"TRUNC"}, Group: "numbers", Signatures: rounded, Errors: "a result of more than 38 digits",
			Doc: "The number without the digits behind the given ones.", Examples: []Example{{"TRUNCATE(-1.58, 1)", "-1.5"}, {"TRUNCATE(1299, -2)", "1200"}},
		},
		{
			SQL: "MOD", Group: "numbers", Syntax: "MOD(x, y), x % y", Special: true, Errors: "division by zero",
			Signatures: []Signature{rule(Same, param("x", Int), param("y", Int)), rule(Same, param("x", BigInt), param("y", BigInt)), rule(Same, param("x", Decimal), param("y", Decimal))},
			Doc:        "The remainder x % y; it has the sign of x.", Examples: []Example{{"MOD(-7, 3)", "-1"}},
		},
		{
			Name: "power", SQL: "POWER", Aliases: []string{"POW"}, Group: "numbers", Signatures: []Signature{gives(Double, param("x", Double), param("y", Double))},
			Errors: "zero to a negative power; a negative number to a power that is not whole; a result that is too large or too small for a DOUBLE",
			Doc:    "x to the power of y, as a DOUBLE.", Examples: []Example{{"POWER(2, 10)", "1024"}},
		},
		{
			Name: "sqrt", SQL: "SQRT", Group: "numbers", Signatures: []Signature{gives(Double, param("x", Double))}, Errors: "a negative number",
			Doc: "The square root, as a DOUBLE.", Examples: []Example{{"SQRT(2.25)", "1.5"}},
		},
		{
			Name: "exp", SQL: "EXP", Group: "numbers", Signatures: []Signature{gives(Double, param("x", Double))}, Errors: "a result that is too large or too small for a DOUBLE",
			Doc: "e to the power of x, as a DOUBLE.", Examples: []Example{{"EXP(0)", "1"}},
		},
		{
			Name: "ln", SQL: "LN", Group: "numbers", Signatures: []Signature{gives(Double, param("x", Double))}, Errors: "zero and negative numbers",
			Doc: "The natural logarithm, as a DOUBLE.", Examples: []Example{{"LN(1)", "0"}},
		},
		{
			Name: "log10", SQL: "LOG10", Group: "numbers", Signatures: []Signature{gives(Double, param("x", Double))}, Errors: "zero and negative numbers",
			Doc: "The logarithm to base 10, as a DOUBLE.", Examples: []Example{{"LOG10(1000)", "3"}},
		},
	}
}
