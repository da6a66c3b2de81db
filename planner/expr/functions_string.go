package expr

const tooLong = "a result longer than 256 KiB"

// conditions are the functions that choose among their arguments.
func conditions() []Function {
	x, y := param("x", Null), param("y", Null)
	same := Signature{Params: []Param{x, y}, Rule: Same, Variadic: true}
	return []Function{
		{
			SQL: "COALESCE", Group: "conditions", Special: true, Nulls: SkipNulls,
			Signatures: []Signature{same},
			Doc:        "The first argument that is not NULL; those behind it are not computed.",
			Examples:   []Example{{"COALESCE(NULL, 2, 1 / 0)", "2"}, {"COALESCE(NULL, NULL)", "NULL"}},
		},
		{
			SQL: "IFNULL", Group: "conditions", Special: true, Nulls: SkipNulls, Signatures: []Signature{rule(Same, x, y)},
			Doc: "The first argument, or the second where the first is NULL: COALESCE of two.", Examples: []Example{{"IFNULL(NULL, 'none')", "none"}},
		},
		{
			SQL: "NULLIF", Group: "conditions", Special: true, Nulls: SkipNulls, Signatures: []Signature{rule(Same, x, y)},
			Doc:      "NULL where both arguments are equal, else the first: x / NULLIF(y, 0) never divides by zero.",
			Examples: []Example{{"NULLIF(5, 5)", "NULL"}, {"NULLIF(5, 0)", "5"}},
		},
		{
			SQL: "IF", Group: "conditions", Special: true, Nulls: SkipNulls, Signatures: []Signature{rule(Same, param("condition", Boolean), x, y)},
			Doc:      "The second argument where the condition is true, else the third: CASE WHEN condition THEN x ELSE y END.",
			Examples: []Example{{"IF(2 > 1, 'more', 'less')", "more"}, {"IF(NULL, 1, 2)", "2"}},
		},
		{
			Name: "greatest", SQL: "GREATEST", Group: "conditions", Nulls: SkipNulls, Signatures: []Signature{same},
			Doc:      "The greatest argument; NULLs do not count, and the result is NULL only if all are.",
			Examples: []Example{{"GREATEST(3, NULL, 7)", "7"}, {"GREATEST('b', 'a')", "b"}},
		},
		{
			Name: "least", SQL: "LEAST", Group: "conditions", Nulls: SkipNulls, Signatures: []Signature{same},
			Doc: "The least argument; NULLs do not count, and the result is NULL only if all are.", Examples: []Example{{"LEAST(3, NULL, 7)", "3"}},
		},
	}
}

// texts are the functions of text and bytes.
func texts() []Function {
	text, chars, part := param("text", String), param("characters", String), param("part", String)
	bytes, length, n := param("bytes", Bytes), param("length", Int), param("n", Int)
	from, pattern := param("from", Int), param("pattern", String)
	return []Function{
		{
			Name: "lower", SQL: "LOWER", Group: "strings", Signatures: []Signature{gives(String, text)},
			Doc: "The text in lower case.", Examples: []Example{{"LOWER('Weir ÄÖ')", "weir äö"}},
		},
		{
			Name: "upper", SQL: "UPPER", Group: "strings", Signatures: []Signature{gives(String, text)},
			Doc: "The text in upper case.", Examples: []Example{{"UPPER('Weir äö')", "WEIR ÄÖ"}},
		},
		{
			Name: "char_length", SQL: "CHAR_LENGTH", Aliases: []string{"CHARACTER_LENGTH", "LENGTH"}, Group: "strings",
			Signatures: []Signature{gives(Int, text)}, Doc: "The number of characters (Unicode code points).", Examples: []Example{{"CHAR_LENGTH('añb')", "3"}},
		},
		{
			Name: "octet_length", SQL: "OCTET_LENGTH", Group: "strings", Signatures: []Signature{gives(Int, text), gives(Int, bytes)},
			Doc: "The number of bytes.", Examples: []Example{{"OCTET_LENGTH('añb')", "4"}, {"OCTET_LENGTH(X'00ff')", "2"}},
		},
		{
			Name: "trim", SQL: "TRIM", Aliases: []string{"BTRIM"}, Group: "strings", Syntax: "TRIM([BOTH | LEADING | TRAILING] [characters] FROM text), TRIM(text), BTRIM(text, characters)",
			Signatures: []Signature{gives(String, text), gives(String, text, chars)},
			Doc:        "The text without the given characters, blanks if none are given, at its ends.",
			Examples:   []Example{{"TRIM('  a b ')", "a b"}, {"TRIM(LEADING 'xy' FROM 'xyxaxy')", "axy"}},
		},
		{
			Name: "ltrim", SQL: "LTRIM", Group: "strings", Signatures: []Signature{gives(String, text), gives(String, text, chars)},
			Doc: "The text without the given characters, blanks if none are given, at its beginning.", Examples: []Example{{"LTRIM('xxax', 'x')", "ax"}},
		},
		{
			Name: "rtrim", SQL: "RTRIM", Group: "strings", Signatures: []Signature{gives(String, text), gives(String, text, chars)},
			Doc: "The text without the given characters, blanks if none are given, at its end.", Examples: []Example{{"RTRIM('xaxx', 'x')", "xa"}},
		},
		{
			Name: "substring", SQL: "SUBSTRING", Aliases: []string{"SUBSTR"}, Group: "strings", Syntax: "SUBSTRING(text FROM from [FOR length]), SUBSTRING(text, from [, length])",
			Signatures: []Signature{gives(String, text, from), gives(String, text, from, length), gives(Bytes, bytes, from), gives(Bytes, bytes, from, length)},
			Errors:     "a negative length",
			Doc:        "The characters (of BYTES: bytes) from a position on, the first being 1, to the end or for a length; positions before the first count, but hold nothing.",
			Examples:   []Example{{"SUBSTRING('behavior' FROM 3)", "havior"}, {"SUBSTRING('behavior', 3, 2)", "ha"}, {"SUBSTRING('abc', -1, 3)", "a"}},
		},
		{
			Name: "replace", SQL: "REPLACE", Group: "strings", Signatures: []Signature{gives(String, text, part, param("new", String))}, Errors: tooLong,
			Doc: "The text with every occurrence of a part replaced; an empty part occurs nowhere.", Examples: []Example{{"REPLACE('a-b-c', '-', '+')", "a+b+c"}},
		},
		{
			Name: "split_index", SQL: "SPLIT_INDEX", Group: "strings", Signatures: []Signature{gives(String, text, param("delimiter", String), n)},
			Doc:      "The n-th piece of the text between delimiters, the first being 0; NULL where there is none.",
			Examples: []Example{{"SPLIT_INDEX('a,b,c', ',', 1)", "b"}, {"SPLIT_INDEX('a,b,c', ',', 3)", "NULL"}},
		},
		{
			Name: "split_part", SQL: "SPLIT_PART", Group: "strings", Signatures: []Signature{gives(String, text, param("delimiter", String), n)}, Errors: "n = 0",
			Doc:      "The n-th piece of the text between delimiters, the first being 1, the last -1; '' where there is none.",
			Examples: []Example{{"SPLIT_PART('a,b,c', ',', 2)", "b"}, {"SPLIT_PART('a,b,c', ',', -1)", "c"}},
		},
		{
			Name: "position", SQL: "POSITION", Group: "strings", Syntax: "POSITION(part IN text)", Signatures: []Signature{gives(Int, part, text)},
			Doc:      "Where the part first occurs in the text, the first character being 1; 0 where it does not.",
			Examples: []Example{{"POSITION('b' IN 'abc')", "2"}, {"POSITION('x' IN 'abc')", "0"}},
		},
		{
			Name: "concat", SQL: "CONCAT", Group: "strings", Nulls: SkipNulls, Errors: tooLong,
			Signatures: []Signature{{Params: []Param{text}, Variadic: true, Result: Type{Kind: String}}},
			Doc:        "The texts one behind the other; NULLs are left out, and the result is never NULL. Arguments of other types are taken as text.",
			Examples:   []Example{{"CONCAT('a', NULL, 1)", "a1"}},
		},
		{
			Name: "concat_ws", SQL: "CONCAT_WS", Group: "strings", Nulls: SkipNulls, Errors: tooLong,
			Signatures: []Signature{{Params: []Param{param("separator", String), text}, Variadic: true, Result: Type{Kind: String}}},
			Doc:        "The texts one behind the other with the separator between them; NULLs are left out, and only a NULL separator gives NULL.",
			Examples:   []Example{{"CONCAT_WS('-', 'a', NULL, 'b')", "a-b"}},
		},
		{
			Name: "concat_op", SQL: "||", Group: "strings", Syntax: "x || y", Errors: tooLong,
			Signatures: []Signature{gives(String, text, text), gives(Bytes, bytes, bytes)},
			Doc:        "Two texts, or two BYTES, one behind the other; where one side is a text, the other is taken as text.",
			Examples:   []Example{{"'a' || 1", "a1"}, {"'a' || NULL", "NULL"}},
		},
		{
			Name: "left", SQL: "LEFT", Group: "strings", Signatures: []Signature{gives(String, text, n)},
			Doc: "The first n characters; with a negative n all but the last -n.", Examples: []Example{{"LEFT('abc', 2)", "ab"}, {"LEFT('abc', -1)", "ab"}},
		},
		{
			Name: "right", SQL: "RIGHT", Group: "strings", Signatures: []Signature{gives(String, text, n)},
			Doc: "The last n characters; with a negative n all but the first -n.", Examples: []Example{{"RIGHT('abc', 2)", "bc"}},
		},
		{
			Name: "lpad", SQL: "LPAD", Group: "strings", Errors: tooLong, Signatures: []Signature{gives(String, text, length), gives(String, text, length, param("fill", String))},
			Doc: "The text filled on the left to a length in characters, with blanks if nothing else is given; a longer text is cut at its end.", Examples: []Example{{"LPAD('7', 3, '0')", "007"}, {"LPAD('abc', 2)", "ab"}},
		},
		{
			Name: "rpad", SQL: "RPAD", Group: "strings", Errors: tooLong, Signatures: []Signature{gives(String, text, length), gives(String, text, length, param("fill", String))},
			Doc: "The text filled on the right to a length in characters, with blanks if nothing else is given; a longer text is cut.", Examples: []Example{{"RPAD('a', 3, '.')", "a.."}},
		},
		{
			Name: "reverse", SQL: "REVERSE", Group: "strings", Signatures: []Signature{gives(String, text)}, Doc: "The characters in the opposite order.", Examples: []Example{{"REVERSE('abc')", "cba"}},
		},
		{
			Name: "repeat", SQL: "REPEAT", Group: "strings", Errors: tooLong, Signatures: []Signature{gives(String, text, n)},
			Doc: "The text n times; '' where n is not positive.", Examples: []Example{{"REPEAT('ab', 2)", "abab"}},
		},
		{
			Name: "starts_with", SQL: "STARTS_WITH", Aliases: []string{"STARTSWITH"}, Group: "strings", Signatures: []Signature{gives(Boolean, text, part)},
			Doc: "Whether the text begins with the part.", Examples: []Example{{"STARTS_WITH('abc', 'ab')", "true"}},
		},
		{
			Name: "regexp_extract", SQL: "REGEXP_EXTRACT", Group: "strings", Errors: "a pattern from data that is no regular expression (a constant one is refused when the query is planned)",
			Signatures: []Signature{gives(String, text, pattern), gives(String, text, pattern, param("group", Int))},
			Doc:        "What the group of a regular expression (RE2's syntax) first matches; group 0, the whole match, if none is given; NULL where nothing matches or there is no such group.",
			Examples:   []Example{{"REGEXP_EXTRACT('id=42;', 'id=([0-9]+)', 1)", "42"}, {"REGEXP_EXTRACT('x', '[0-9]')", "NULL"}},
		},
		{
			Name: "regexp_replace", SQL: "REGEXP_REPLACE", Group: "strings", Errors: "a pattern from data that is no regular expression; " + tooLong,
			Signatures: []Signature{gives(String, text, pattern, param("new", String))},
			Doc:        "The text with every match of a regular expression (RE2's syntax) replaced; \\1 to \\9 in the replacement stand for the groups, \\& for the match.",
			Examples:   []Example{{"REGEXP_REPLACE('a1b22', '[0-9]+', '#')", "a#b#"}, {`REGEXP_REPLACE('ab', '(a)(b)', '\2\1')`, "ba"}},
		},
		likeFunction("like", "LIKE", "case counts", []Example{{"'abc' LIKE 'a%'", "true"}, {"'a%c' LIKE 'a!%_' ESCAPE '!'", "true"}}),
		likeFunction("ilike", "ILIKE", "case does not count", []Example{{"'ABC' ILIKE 'a_c'", "true"}}),
		{
			Name: "json_value", SQL: "JSON_VALUE", Group: "JSON", Signatures: []Signature{gives(String, text, param("path", String))},
			Errors:   "a path from data that is none (a constant one is refused when the query is planned)",
			Doc:      "The number, text or boolean at a path ($.name, $['name'], $.list[0]) of a JSON text, as text; NULL where the path leads nowhere, to null, to an object or to an array, and where the text is not JSON.",
			Examples: []Example{{`JSON_VALUE('{"a": {"b": [1, 2]}}', '$.a.b[1]')`, "2"}, {`JSON_VALUE('{"a": {}}', '$.a')`, "NULL"}},
		},
	}
}

func likeFunction(name, word, fold string, examples []Example) Function {
	return Function{
		Name: name, SQL: word, Group: "strings", Syntax: "text [NOT] " + word + " pattern [ESCAPE character]",
		Signatures: []Signature{gives(Boolean, param("text", String), param("pattern", String), param("escape", String))},
		Errors:     "a pattern from data that ends in its escape character; an escape from data that is longer than a character",
		Doc:        "Whether all of the text fits the pattern, in which % stands for any characters and _ for one; " + fold + ". The escape character, \\ if none is given, takes the next one literally; ESCAPE '' turns it off.",
		Examples:   examples,
	}
}
