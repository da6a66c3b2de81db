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
	Broken     []Ident // tables of CREATE TABLE statements that are wrong, and left out
}

// A Statement is a *CreateTable, *Insert, *Select or *Set.
type Statement interface {
	Node
	statement()
}

// An Ident is a name as written; case is kept, quotes are not part of it.
type Ident struct {
	Span
	Name string
}

// CreateTable is CREATE TABLE name (elements) WITH (options).
type CreateTable struct {
	Span
	Name       Ident
	Columns    []*Column
	Watermark  *Watermark  // may be nil
	PrimaryKey *PrimaryKey // may be nil
	Options    []*Option
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
// there are several, and its arguments.
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
	Query   *Select
}

// Select is SELECT items FROM table [WHERE …] [GROUP BY …].
type Select struct {
	Span
	Items   []*Item
	From    *TableRef
	Where   Expr   // may be nil
	GroupBy []Expr // empty: none
}

// An Item of a select list is an expression with an optional alias, or a *Star.
type Item struct {
	Span
	Expr  Expr
	Alias *Ident // may be nil
}

// A TableRef is a table's name with an optional alias.
type TableRef struct {
	Span
	Name  Ident
	Alias *Ident // may be nil
}

func (*CreateTable) statement() {}
func (*Set) statement()         {}
func (*Insert) statement()      {}
func (*Select) statement()      {}

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

// An IntervalLit is INTERVAL 'value' UNIT.
type IntervalLit struct {
	Span
	Value string
	Unit  string // upper case
}

// A Unary is Op X, Op being "-", "+" or "NOT".
type Unary struct {
	Span
	Op string
	X  Expr
}

// A Binary is X Op Y. Op is one of OR AND = <> < <= > >= + - * / %, at OpPos.
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

// A Call is Name(Args), Name(*) or Name(DISTINCT Args).
type Call struct {
	Span
	Name     Ident
	Star     bool
	Distinct bool
	Args     []Expr
}

func (*ColumnRef) expr()   {}
func (*Star) expr()        {}
func (*NumberLit) expr()   {}
func (*StringLit) expr()   {}
func (*BoolLit) expr()     {}
func (*NullLit) expr()     {}
func (*IntervalLit) expr() {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*IsNull) expr()      {}
func (*In) expr()          {}
func (*Call) expr()        {}
