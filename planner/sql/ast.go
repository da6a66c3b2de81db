package sql

// A Node is a piece of the syntax tree and of the text: bytes [Pos, End).
type Node interface {
	Pos() int
	End() int
}

// A Span is the range of bytes a node came from; every node embeds one.
type Span struct{ Start, Stop int }

// Pos is the offset of the node's first byte.
func (s Span) Pos() int { return s.Start }

// End is the offset behind the node's last byte.
func (s Span) End() int { return s.Stop }

// A Script is a sequence of statements separated by semicolons.
type Script struct {
	Statements []Statement
	Broken     []Ident // tables and views whose CREATE is wrong, and left out
}

// A Statement is one of the nodes below that say so: CreateTable, CreateView, Drop,
// Show, Describe, Set, Insert, StatementSet, Query, Explain.
type Statement interface {
	Node
	statement()
}

// An Ident is a name as written; case is kept, quotes are not part of it.
type Ident struct {
	Span
	Name string
}

// CreateTable is CREATE TABLE [IF NOT EXISTS] name (elements) WITH (options).
type CreateTable struct {
	Span
	Name        Ident
	IfNotExists bool
	Columns     []*Column
	Watermark   *Watermark  // may be nil
	PrimaryKey  *PrimaryKey // may be nil
	Options     []*Option
}

// A Column is "name type [NOT NULL]", or "name AS expression": then Type is nil.
type Column struct {
	Span
	Name    Ident
	Type    *TypeName
	NotNull bool
	As      Expr // of a computed column, else nil
}

// A TypeName is a type as written: its name in upper case, in Weir's spelling where
// there are several, and its arguments. VARCHAR, VARBINARY, CHAR and the like have other
// names than STRING and BYTES only where a length was asked for. The names of intervals
// are INTERVAL, INTERVAL DAY, INTERVAL DAY TO SECOND and so on.
type TypeName struct {
	Span
	Name string
	Args []int
}

// A Watermark is WATERMARK FOR column AS expression.
type Watermark struct {
	Span
	Column Ident
	As     Expr
}

// A PrimaryKey is PRIMARY KEY (columns) NOT ENFORCED.
type PrimaryKey struct {
	Span
	Columns []Ident
}

// An Option is 'key' = 'value'.
type Option struct {
	Span
	Key, Value *StringLit
}

// Set is SET 'key' = 'value'.
type Set struct {
	Span
	Key, Value *StringLit
}

// Insert is INSERT INTO table [(columns)] query.
type Insert struct {
	Span
	Table   Ident
	Columns []Ident // empty: all, in order
	Query   *Query
}

// CreateView is CREATE VIEW [IF NOT EXISTS] name [(columns)] AS query.
type CreateView struct {
	Span
	Name        Ident
	Columns     []Ident // empty: those of the query
	IfNotExists bool
	Query       *Query
}

// Drop is DROP TABLE [IF EXISTS] name or DROP VIEW [IF EXISTS] name.
type Drop struct {
	Span
	View     bool
	IfExists bool
	Name     Ident
}

// Show is SHOW TABLES, VIEWS, FUNCTIONS, CREATE TABLE name or CREATE VIEW name.
type Show struct {
	Span
	What string // as above, without the name
	Name *Ident // of CREATE TABLE and CREATE VIEW, else nil
}

// Describe is DESCRIBE name, or DESC name.
type Describe struct {
	Span
	Name Ident
}

// Explain is EXPLAIN [PLAN FOR] statement: a *Query, an *Insert or a *StatementSet.
type Explain struct {
	Span
	Statement Statement
}

// A StatementSet is EXECUTE STATEMENT SET BEGIN insert; … END.
type StatementSet struct {
	Span
	Inserts []*Insert
}

// A Query is [WITH …] body.
type Query struct {
	Span
	With []*CTE // empty: none
	Body Body
}

// A CTE is one name of WITH: name [(columns)] AS (query).
type CTE struct {
	Span
	Name    Ident
	Columns []Ident // empty: those of the query
	Query   *Query
}

// A Body is a *Select, a *Values, a *Union, or, where it has a WITH of its own within a
// query that has one or within a union, a *Query.
type Body interface {
	Node
	body()
}

// A Union is UNION ALL of two or more queries.
type Union struct {
	Span
	Inputs []Body
}

// A Values is VALUES (…), (…), …: rows of equal length.
type Values struct {
	Span
	Rows [][]Expr
}

// Select is SELECT [DISTINCT] items [FROM …] [WHERE …] [GROUP BY …] [HAVING …].
type Select struct {
	Span
	Distinct bool
	Items    []*Item
	From     From   // nil: none
	Where    Expr   // may be nil
	GroupBy  []Expr // empty: none; may hold a *GroupingSets
	Having   Expr   // may be nil
}

// An Item of a select list is an expression with an optional alias, or a *Star.
type Item struct {
	Span
	Expr  Expr
	Alias *Ident // may be nil
}

// A From is a *TableRef or a *Subquery.
type From interface {
	Node
	from()
}

// A TableRef is the name of a table, view or CTE with an optional alias.
type TableRef struct {
	Span
	Name    Ident
	Alias   *Ident  // may be nil
	Columns []Ident // new names of its columns; empty: as they are
}

// A Subquery is (query) with an optional alias.
type Subquery struct {
	Span
	Query   *Query
	Alias   *Ident  // may be nil
	Columns []Ident // new names of its columns; empty: as they are
}

func (*Select) body() {}
func (*Values) body() {}
func (*Union) body()  {}
func (*Query) body()  {}

func (*TableRef) from() {}
func (*Subquery) from() {}

func (*CreateTable) statement()  {}
func (*CreateView) statement()   {}
func (*Drop) statement()         {}
func (*Show) statement()         {}
func (*Describe) statement()     {}
func (*Explain) statement()      {}
func (*StatementSet) statement() {}
func (*Set) statement()          {}
func (*Insert) statement()       {}
func (*Query) statement()        {}

// An Expr is one of the nodes below.
type Expr interface {
	Node
	expr()
}

// A ColumnRef is column or table.column.
type ColumnRef struct {
	Span
	Table *Ident // may be nil
	Name  Ident
}

// A Star is * or table.*, in a select list only.
type Star struct {
	Span
	Table *Ident // may be nil
}

// A NumberLit is an unsigned number as written.
type NumberLit struct {
	Span
	Text string
}

// A StringLit is a string without its quotes.
type StringLit struct {
	Span
	Value string
}

// A BoolLit is TRUE or FALSE.
type BoolLit struct {
	Span
	Value bool
}

// A NullLit is NULL.
type NullLit struct{ Span }

// An IntervalLit is INTERVAL 'value' UNIT [TO UNIT], or INTERVAL '1 day 2 hours', whose
// value has the units in it.
type IntervalLit struct {
	Span
	Value string
	Unit  string // upper case, singular; empty: in Value
	To    string // upper case, singular; empty: none
}

// A TypedLit is DATE, TIMESTAMP or TIMESTAMP_LTZ 'value'.
type TypedLit struct {
	Span
	Type  *TypeName
	Value string
}

// A BytesLit is X'…'; Value is the hexadecimal digits as written.
type BytesLit struct {
	Span
	Value string
}

// A Word is a bare word that a function's own syntax asks for: the unit of EXTRACT and
// of FLOOR … TO, the side of TRIM. Upper case.
type Word struct {
	Span
	Name string
}

// A Unary is Op X, Op being "-", "+" or "NOT".
type Unary struct {
	Span
	Op string
	X  Expr
}

// A Binary is X Op Y. Op is one of OR AND = <> < <= > >= || + - * / %, at OpPos.
type Binary struct {
	Span
	Op    string
	OpPos int
	X, Y  Expr
}

// An IsNull is X IS [NOT] NULL.
type IsNull struct {
	Span
	X   Expr
	Not bool
}

// An In is X [NOT] IN (List).
type In struct {
	Span
	X    Expr
	List []Expr
	Not  bool
}

// A Between is X [NOT] BETWEEN Low AND High.
type Between struct {
	Span
	X, Low, High Expr
	Not          bool
}

// A Like is X [NOT] LIKE Pattern [ESCAPE Escape], or ILIKE with Fold.
type Like struct {
	Span
	X, Pattern Expr
	Escape     Expr // may be nil
	Fold, Not  bool
}

// An IsDistinct is X IS [NOT] DISTINCT FROM Y.
type IsDistinct struct {
	Span
	X, Y Expr
	Not  bool
}

// An IsTruth is X IS [NOT] TRUE, FALSE or UNKNOWN (Value).
type IsTruth struct {
	Span
	X     Expr
	Value string
	Not   bool
}

// A Case is CASE [Operand] WHEN … THEN … [ELSE …] END.
type Case struct {
	Span
	Operand Expr // nil: each When is a condition
	Whens   []*When
	Else    Expr // may be nil
}

// A When is WHEN If THEN Then.
type When struct {
	Span
	If, Then Expr
}

// A Cast is CAST(X AS Type), TRY_CAST(X AS Type), or X::Type.
type Cast struct {
	Span
	X    Expr
	Type *TypeName
	Try  bool
}

// A GroupingSets is an element of GROUP BY: ROLLUP (…), CUBE (…) or GROUPING SETS (…).
// A List element is an expression, a *Row, or, in GROUPING SETS, a *GroupingSets.
type GroupingSets struct {
	Span
	Kind string // "ROLLUP", "CUBE", "GROUPING SETS"
	List []Expr
}

// A Row is (a, b, …) or () within GROUP BY.
type Row struct {
	Span
	List []Expr
}

// A Call is Name(Args), Name(*) or Name(DISTINCT Args), with FILTER (WHERE Filter). The
// calls with a syntax of their own have their operands in this order: EXTRACT(Word, x),
// FLOOR and CEIL (x, Word), TRIM(Word, characters, x), POSITION(part, x),
// SUBSTRING(x, from, for). A plain TRIM(x) has the one operand.
type Call struct {
	Span
	Name     Ident
	Star     bool
	Distinct bool
	Args     []Expr
	Filter   Expr // may be nil
}

func (*ColumnRef) expr()    {}
func (*Star) expr()         {}
func (*NumberLit) expr()    {}
func (*StringLit) expr()    {}
func (*BoolLit) expr()      {}
func (*NullLit) expr()      {}
func (*IntervalLit) expr()  {}
func (*Unary) expr()        {}
func (*Binary) expr()       {}
func (*IsNull) expr()       {}
func (*In) expr()           {}
func (*Call) expr()         {}
func (*TypedLit) expr()     {}
func (*BytesLit) expr()     {}
func (*Word) expr()         {}
func (*Between) expr()      {}
func (*Like) expr()         {}
func (*IsDistinct) expr()   {}
func (*IsTruth) expr()      {}
func (*Case) expr()         {}
func (*Cast) expr()         {}
func (*GroupingSets) expr() {}
func (*Row) expr()          {}
