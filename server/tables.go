package server

import (
	"context"
	"encoding/json"
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

// A TableRequest defines a table of the catalog.
type TableRequest struct {
	// One CREATE TABLE.
	SQL string `json:"sql" validate:"required" example:"CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen')"`
} // @name TableRequest

// A Table is an entry of the catalog.
type Table struct {
	Name      string         `json:"name"`
	SQL       string         `json:"sql"`
	Columns   []ResultColumn `json:"columns"`
	Connector string         `json:"connector"`
	CreatedAt time.Time      `json:"created_at"`
} // @name Table

// A TableList lists the catalog by name.
type TableList struct {
	Tables []Table `json:"tables"`
} // @name TableList

func viewTable(t weir.Table) (Table, error) {
	v := Table{Name: t.Name, SQL: t.SQL, Columns: []ResultColumn{}, Connector: t.Connector, CreatedAt: t.CreatedAt.UTC()}
	if len(t.Columns) > 0 {
		if err := json.Unmarshal(t.Columns, &v.Columns); err != nil {
			return v, err
		}
	}
	return v, nil
}

// NewTable makes the catalog's entry of a text that is one CREATE TABLE or CREATE VIEW;
// a view reads what is in the catalog, which may be nil. What is wrong with the text is a
// *planner.Error.
func NewTable(sql string, created time.Time, in planner.Catalog, checkPath func(string) error) (weir.Table, error) {
	t, err := planner.Define(sql, in, planner.Options{CheckPath: checkPath})
	if err != nil {
		return weir.Table{}, err
	}
	if t.Name == "." || t.Name == ".." {
		return weir.Table{}, fmt.Errorf("%w: a table named %q could not be reached by a path: choose another name", weir.ErrInvalid, t.Name)
	}
	columns, err := json.Marshal(viewColumns(t.Columns))
	if err != nil {
		return weir.Table{}, err
	}
	return weir.Table{Name: t.Name, SQL: t.SQL, Columns: columns, Connector: t.Connector, CreatedAt: created}, nil
}

// createTable adds a table.
//
//	@Summary	Add a table to the catalog
//	@Tags		sql
//	@Accept		json
//	@Produce	json
//	@Param		table	body		TableRequest	true	"its definition"
//	@Success	201		{object}	Table
//	@Header		201		{string}	Location	"the table"
//	@Router		/v1/tables [post]
func (s *Server) createTable(c echo.Context) error {
	var req TableRequest
	if err := s.decode(c, query(c), &req); err != nil {
		return err
	}
	t, err := NewTable(req.SQL, time.Now(), catalog{c.Request().Context(), s.deps.Tables}, s.opts.CheckPath)
	if err != nil {
		return err
	}
	if err := s.deps.Tables.CreateTable(c.Request().Context(), t); err != nil {
		return err
	}
	v, err := viewTable(t)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", "/v1/tables/"+url.PathEscape(t.Name))
	return c.JSON(http.StatusCreated, v)
}

// listTables lists the catalog.
//
//	@Summary	List the catalog's tables
//	@Tags		sql
//	@Produce	json
//	@Success	200	{object}	TableList
//	@Router		/v1/tables [get]
func (s *Server) listTables(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	all, err := s.deps.Tables.Tables(c.Request().Context())
	if err != nil {
		return err
	}
	list := TableList{Tables: []Table{}}
	for _, t := range all {
		v, err := viewTable(t)
		if err != nil {
			return err
		}
		list.Tables = append(list.Tables, v)
	}
	return c.JSON(http.StatusOK, list)
}

// getTable shows a table.
//
//	@Summary	Show a table of the catalog
//	@Tags		sql
//	@Produce	json
//	@Param		name	path		string	true	"name, in any case"
//	@Success	200		{object}	Table
//	@Router		/v1/tables/{name} [get]
func (s *Server) getTable(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	t, err := s.deps.Tables.TableByName(c.Request().Context(), param(c, "name"))
	if err != nil {
		return err
	}
	v, err := viewTable(t)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, v)
}

// dropTable removes a table.
//
//	@Summary	Remove a table; jobs keep the definition they were planned with
//	@Tags		sql
//	@Param		name	path	string	true	"name, in any case"
//	@Success	204
//	@Router		/v1/tables/{name} [delete]
func (s *Server) dropTable(c echo.Context) error {
	if err := query(c).done(); err != nil {
		return err
	}
	if err := s.deps.Tables.DropTable(c.Request().Context(), param(c, "name")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
