package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"weir"
	"weir/planner"
	"weir/server/job"
)

// A catalog is the metastore's tables as the planner asks for them, in one request.
type catalog struct {
	ctx    context.Context
	tables job.Tables
}

// TableNames lists the tables.
func (c catalog) TableNames() ([]string, error) {
	all, err := c.tables.Tables(c.ctx)
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	return names, err
}

// TableSQL returns the CREATE TABLE of one of them.
func (c catalog) TableSQL(name string) (string, error) {
	t, err := c.tables.TableByName(c.ctx, name)
	return t.SQL, err
}

// A TableRequest defines a table or view of the catalog.
type TableRequest struct {
	// One CREATE TABLE or CREATE VIEW.
	SQL string `json:"sql" validate:"required" example:"CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen')"`
} // @name TableRequest

// A Table is an entry of the catalog: a table, or a view.
type Table struct {
	Name      string        `json:"name"`
	Kind      string        `json:"kind" enums:"table,view" example:"table"`
	SQL       string        `json:"sql"`
	Columns   []TableColumn `json:"columns"`
	Connector string        `json:"connector,omitempty"` // of a table
	CreatedAt time.Time     `json:"created_at"`
} // @name Table

// A TableColumn is a column of a table or view.
type TableColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type" example:"BIGINT"`
	NotNull  bool   `json:"not_null"`
	Computed string `json:"computed,omitempty" example:"TO_TIMESTAMP_LTZ(t, 0)"` // the expression that computes it from the others
} // @name TableColumn

// A TableList lists the catalog by name.
type TableList struct {
	Tables []Table `json:"tables"`
} // @name TableList

// view shows an entry: of a view the columns that it has now, whatever became of the
// tables since it was made; those of then if it cannot be read any more.
func (o *overlay) view(t weir.Table) (Table, error) {
	if isView(t) {
		bound, err := o.definition(t)
		var refused *planner.Error
		if err != nil && !errors.As(err, &refused) {
			return Table{}, err
		}
		if err == nil {
			now, err := entry(bound, t.CreatedAt)
			if err != nil {
				return Table{}, err
			}
			t.Columns = now.Columns
		}
	}
	v := Table{Name: t.Name, Kind: kindOf(t), SQL: t.SQL, Columns: []TableColumn{}, Connector: t.Connector, CreatedAt: t.CreatedAt.UTC()}
	if len(t.Columns) > 0 {
		if err := json.Unmarshal(t.Columns, &v.Columns); err != nil {
			return v, err
		}
	}
	return v, nil
}

func tableColumns(t *planner.Table) []TableColumn {
	out := make([]TableColumn, len(t.Columns))
	for i, c := range t.Columns {
		out[i] = TableColumn{Name: c.Name, Type: c.Type.String(), NotNull: c.NotNull, Computed: t.Computed[i]}
	}
	return out
}

// NewTable makes the catalog's entry of a text that is one CREATE TABLE or CREATE VIEW;
// a view reads what is in the catalog, which may be nil. What is wrong with the text is a
// *planner.Error.
func NewTable(sql string, created time.Time, in planner.Catalog, checkPath func(string) error) (weir.Table, error) {
	t, err := planner.Define(sql, in, planner.Options{CheckPath: checkPath})
	if err != nil {
		return weir.Table{}, err
	}
	if err := checkTableName(t.Name); err != nil {
		return weir.Table{}, err
	}
	return entry(t, created)
}

// createTable adds a table or view.
//
//	@Summary		Add a table or view to the catalog
//	@Description	With IF NOT EXISTS, one of that name that is there already is answered with 200.
//	@Tags			sql
//	@Accept			json
//	@Produce		json
//	@Param			table	body		TableRequest	true	"its definition"
//	@Success		200		{object}	Table
//	@Success		201		{object}	Table
//	@Header			201		{string}	Location	"the table"
//	@Router			/v1/tables [post]
func (s *Server) createTable(c echo.Context) error {
	var req TableRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	var v Table
	status := http.StatusCreated
	err := s.changeCatalog(c.Request().Context(), func(o *overlay) error {
		t, err := NewTable(req.SQL, time.Now(), o, s.opts.CheckPath)
		if err != nil {
			return err
		}
		old, there := o.find(t.Name)
		switch {
		case !there:
			o.put(t, 0)
		case ifNotExists(req.SQL):
			t, status = old, http.StatusOK
		default:
			return fmt.Errorf("%w: a %s named %q exists already: drop it or choose another name", weir.ErrConflict, kindOf(old), old.Name)
		}
		v, err = o.view(t)
		return err
	})
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/v1/tables/"+url.PathEscape(v.Name))
	return c.JSON(status, v)
}

// ifNotExists reports whether a definition says so.
func ifNotExists(sql string) bool {
	script, err := planner.Statements(sql)
	return err == nil && len(script) == 1 && script[0].IfNotExists
}

// listTables lists the catalog.
//
//	@Summary	List the catalog's tables and views
//	@Tags		sql
//	@Produce	json
//	@Success	200	{object}	TableList
//	@Router		/v1/tables [get]
func (s *Server) listTables(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	o, err := newOverlay(c.Request().Context(), s.deps.Tables)
	if err != nil {
		return err
	}
	list := TableList{Tables: []Table{}}
	for _, t := range o.now {
		v, err := o.view(t)
		if err != nil {
			return err
		}
		list.Tables = append(list.Tables, v)
	}
	return c.JSON(http.StatusOK, list)
}

// getTable shows a table or view.
//
//	@Summary	Show a table or view of the catalog
//	@Tags		sql
//	@Produce	json
//	@Param		name	path		string	true	"name, in any case"
//	@Success	200		{object}	Table
//	@Router		/v1/tables/{name} [get]
func (s *Server) getTable(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	o, err := newOverlay(c.Request().Context(), s.deps.Tables)
	if err != nil {
		return err
	}
	name := param(c, "name")
	t, ok := o.find(name)
	if !ok {
		return fmt.Errorf("%w: table %q", weir.ErrNotFound, name)
	}
	v, err := o.view(t)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

// dropTable removes a table or view.
//
//	@Summary		Remove a table or view
//	@Description	Jobs keep the definitions they were planned with. What a view reads is refused: drop the view first.
//	@Tags			sql
//	@Param			name	path	string	true	"name, in any case"
//	@Success		204
//	@Router			/v1/tables/{name} [delete]
func (s *Server) dropTable(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	name := param(c, "name")
	err := s.changeCatalog(c.Request().Context(), func(o *overlay) error {
		t, ok := o.find(name)
		if !ok {
			return fmt.Errorf("%w: table %q", weir.ErrNotFound, name)
		}
		o.drop(t.Name, 0)
		lost, err := o.losses()
		if err != nil || len(lost) == 0 {
			return err
		}
		message, _ := o.describeLoss(lost[0].by, lost)
		return fmt.Errorf("%w: %s: drop what reads it first", weir.ErrConflict, message)
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
