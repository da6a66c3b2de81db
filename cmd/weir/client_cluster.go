package main

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

func newTable() *cobra.Command {
	cmd := &cobra.Command{
		Use: "table", Short: "list, create and drop tables and views of the catalog", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTableList(), newTableCreate(), newTableDrop())
	return cmd
}

// A tableView is a table as the API shows it.
type tableView struct {
	Name      string `json:"name"`
	Kind      string `json:"kind"`
	Connector string `json:"connector,omitempty"`
	Columns   []struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		NotNull  bool   `json:"not_null"`
		Computed string `json:"computed,omitempty"`
	} `json:"columns"`
}

func newTableList() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "list", Short: "list the catalog's tables and views", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var list struct {
				Tables []tableView `json:"tables"`
			}
			if err := c.do(cmd.Context(), "GET", "/v1/tables", nil, &list); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), list.Tables, func(w io.Writer) error {
				t := newTextTable("NAME", "KIND", "CONNECTOR", "COLUMNS")
				for _, v := range list.Tables {
					columns := make([]string, len(v.Columns))
					for i, col := range v.Columns {
						columns[i] = printable(col.Name) + " " + col.Type
					}
					t.add(printable(v.Name), v.Kind, v.Connector, strings.Join(columns, ", "))
				}
				return t.print(w)
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newTableCreate() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "create FILE.sql|-", Short: "add a table or view: one CREATE TABLE or CREATE VIEW", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			sql, err := readScript(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			var v tableView
			if err := c.postSQL(cmd.Context(), "/v1/tables", sql, &v); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), v, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, printable(v.Name))
				return err
			})
		},
	}
	f.add(cmd)
	return cmd
}

func newTableDrop() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "drop TABLE", Short: "remove a table or view; running jobs keep its definition", Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			return c.do(cmd.Context(), "DELETE", "/v1/tables/"+url.PathEscape(args[0]), nil, nil)
		},
	}
	f.add(cmd)
	return cmd
}

func newWorkerList() *cobra.Command {
	var f clientFlags
	cmd := &cobra.Command{
		Use: "list", Short: "list the workers", Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.client()
			if err != nil {
				return err
			}
			var list struct {
				Workers []struct {
					ID        string `json:"id"`
					PID       int    `json:"pid"`
					Host      string `json:"host"`
					Slots     int    `json:"slots"`
					FreeSlots int    `json:"free_slots"`
					Memory    struct {
						Budget  int64 `json:"budget_bytes"`
						Heap    int64 `json:"heap_bytes"`
						State   int64 `json:"state_bytes"`
						Spilled int64 `json:"spilled_bytes"`
					} `json:"memory"`
				} `json:"workers"`
			}
			if err := c.do(cmd.Context(), "GET", "/v1/workers", nil, &list); err != nil {
				return err
			}
			return f.show(cmd.OutOrStdout(), list.Workers, func(w io.Writer) error {
				t := newTextTable("ID", "HOST", "PID", "SLOTS", "FREE", "BUDGET", "HEAP", "STATE", "SPILLED")
				for i := 2; i < len(t.right); i++ {
					t.right[i] = true
				}
				for _, v := range list.Workers {
					t.add(v.ID, v.Host, strconv.Itoa(v.PID), strconv.Itoa(v.Slots), strconv.Itoa(v.FreeSlots),
						bytesText(v.Memory.Budget), bytesText(v.Memory.Heap), bytesText(v.Memory.State), bytesText(v.Memory.Spilled))
				}
				return t.print(w)
			})
		},
	}
	f.add(cmd)
	return cmd
}
