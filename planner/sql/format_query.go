package sql

func (p *printer) query(q *Query) {
	for i, c := range q.With {
		if i == 0 {
			p.add("WITH ")
		} else {
			p.add(", ")
		}
		p.add(QuoteName(c.Name.Name))
		p.columnList(c.Columns)
		p.add(" AS ")
		p.subquery(c.Query)
	}
	if len(q.With) > 0 {
		p.line()
	}
	p.body(q.Body)
}

// subquery prints (query), the query on lines of its own.
func (p *printer) subquery(q *Query) {
	p.add("(")
	p.indent++
	p.line()
	p.query(q)
	p.indent--
	p.line(")")
}

func (p *printer) body(b Body) {
	switch b := b.(type) {
	case *Select:
		p.selectQuery(b)
	case *Values:
		p.add("VALUES ")
		for i, row := range b.Rows {
			if i > 0 {
				p.add(", ")
			}
			p.add("(")
			p.list(row)
			p.add(")")
		}
	case *Union:
		for i, in := range b.Inputs {
			if i > 0 {
				p.line("UNION ALL")
				p.line()
			}
			p.body(in)
		}
	case *Query:
		p.subquery(b)
	}
}

func (p *printer) selectQuery(s *Select) {
	p.add("SELECT ", ifWord(s.Distinct, "DISTINCT "))
	for i, it := range s.Items {
		if i > 0 {
			p.add(", ")
		}
		p.expr(it.Expr, 0)
		if it.Alias != nil {
			p.add(" AS ", QuoteName(it.Alias.Name))
		}
	}
	if s.From != nil {
		p.line("FROM ")
		p.from(s.From)
	}
	if s.Where != nil {
		p.line("WHERE ")
		p.expr(s.Where, 0)
	}
	if len(s.GroupBy) > 0 {
		p.line("GROUP BY ")
		p.list(s.GroupBy)
	}
	if s.Having != nil {
		p.line("HAVING ")
		p.expr(s.Having, 0)
	}
}

func (p *printer) from(f From) {
	switch f := f.(type) {
	case *TableRef:
		p.add(QuoteName(f.Name.Name))
		p.tableAlias(f.Alias, f.Columns)
	case *Subquery:
		p.subquery(f.Query)
		p.tableAlias(f.Alias, f.Columns)
	}
}

func (p *printer) tableAlias(alias *Ident, columns []Ident) {
	if alias != nil {
		p.add(" AS ", QuoteName(alias.Name))
		p.columnList(columns)
	}
}
