package metastore

import (
	"context"
	"database/sql/driver"
)

// maxStatements is how many statements a connection keeps prepared: all that the store
// has in its code, and the usual ones of those that it puts together.
const maxStatements = 200

// preparing opens connections of SQLite's driver that keep what they have prepared:
// reading a statement's text took longer than carrying it out.
type preparing struct{ driver.Connector }

// A plainConn is what a connection of SQLite's driver can do.
type plainConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// A plainStmt is what a statement of SQLite's driver can do.
type plainStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// Connect opens a connection.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &preparingConn{plainConn: c.(plainConn), ready: map[string]plainStmt{}}, nil
}

// A preparingConn is a connection with its prepared statements. One that is being used
// is not among them: the same text may be used within, and is prepared once more then.
type preparingConn struct {
	plainConn
	ready map[string]plainStmt
}

// Unwrap gives the driver's own connection.
func (c *preparingConn) Unwrap() driver.Conn { return c.plainConn }

// take gives the statement to its only user.
func (c *preparingConn) take(ctx context.Context, query string) (plainStmt, error) {
	if s, ok := c.ready[query]; ok {
		delete(c.ready, query)
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(plainStmt), nil
}

// giveBack keeps the statement for the next time, if nothing went wrong with it.
func (c *preparingConn) giveBack(query string, s plainStmt, err error) error {
	if _, there := c.ready[query]; err == nil && !there && len(c.ready) < maxStatements {
		c.ready[query] = s
		return nil
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

// ExecContext carries out a statement without rows.
func (c *preparingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(ctx, args)
	return res, c.giveBack(query, s, err)
}

// QueryContext carries out a statement with rows.
func (c *preparingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, c.giveBack(query, s, err)
	}
	return &preparedRows{rows, c, query, s}, nil
}

// Close closes the connection and its statements.
func (c *preparingConn) Close() error {
	for _, s := range c.ready { // their order does not matter
		s.Close() //nolint:errcheck // the connection says what there is to say
	}
	clear(c.ready)
	return c.plainConn.Close()
}

// preparedRows give their statement back when they are closed.
type preparedRows struct {
	driver.Rows
	conn  *preparingConn
	query string
	stmt  plainStmt
}

// Close ends the reading; a second time it does nothing.
func (r *preparedRows) Close() error {
	if r.stmt == nil {
		return nil
	}
	s := r.stmt
	r.stmt = nil
	return r.conn.giveBack(r.query, s, r.Rows.Close())
}
