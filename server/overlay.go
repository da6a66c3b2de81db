package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir"
	"weir/planner"
	"weir/server/job"
)

// An overlay is the catalog as one request sees it: what was stored when it began, with
// the request's own changes. It is a planner.Catalog. Nothing is written before commit.
type overlay struct {
	seen []weir.Table // as stored
	now  []weir.Table // in that order: by name in lower case
	done []change     // in order
}

// A change is a table or view put into the catalog, or one taken out of it.
type change struct {
	name  string
	put   weir.Table // its Name is empty: taken out
	cause int        // the statement of the script
}

func newOverlay(ctx context.Context, tables job.Tables) (*overlay, error) {
	seen, err := tables.Tables(ctx)
	if err != nil {
		return nil, err
	}
	return &overlay{seen: seen, now: slices.Clone(seen)}, nil
}

// TableNames lists the tables and views.
func (o *overlay) TableNames() ([]string, error) {
	names := make([]string, len(o.now))
	for i, t := range o.now {
		names[i] = t.Name
	}
	return names, nil
}

// TableSQL returns the definition of one of them.
func (o *overlay) TableSQL(name string) (string, error) {
	t, ok := o.find(name)
	if !ok {
		return "", fmt.Errorf("%w: table %q", weir.ErrNotFound, name)
	}
	return t.SQL, nil
}

func (o *overlay) index(name string) (int, bool) {
	return slices.BinarySearchFunc(o.now, strings.ToLower(name), func(t weir.Table, key string) int {
		return cmp.Compare(strings.ToLower(t.Name), key)
	})
}

// find finds a table or view, whatever the case of name.
func (o *overlay) find(name string) (weir.Table, bool) {
	i, ok := o.index(name)
	if !ok {
		return weir.Table{}, false
	}
	return o.now[i], true
}

func (o *overlay) put(t weir.Table, cause int) {
	o.apply(change{t.Name, t, cause})
}

func (o *overlay) drop(name string, cause int) {
	o.apply(change{name: name, cause: cause})
}

func (o *overlay) apply(c change) {
	o.done = append(o.done, c)
	i, there := o.index(c.name)
	switch {
	case c.put.Name == "" && there:
		o.now = slices.Delete(o.now, i, i+1)
	case c.put.Name != "" && there:
		o.now[i] = c.put
	case c.put.Name != "":
		o.now = slices.Insert(o.now, i, c.put)
	}
}

// definition binds a table or view of the overlay.
func (o *overlay) definition(t weir.Table) (*planner.Table, error) {
	return planner.Define(t.SQL, o, planner.Options{})
}

// A loss is a view that a request would make useless.
type loss struct {
	view   string
	by     change
	reason string // as things would be then
}

// losses lists the views that could be read, and cannot be read any more; each with the
// last change before which it could.
func (o *overlay) losses() ([]loss, error) {
	if !slices.ContainsFunc(o.done, func(c change) bool { return c.put.Name == "" }) {
		return nil, nil // what is new breaks nothing
	}
	var list []loss
	for _, t := range o.now {
		if !isView(t) {
			continue
		}
		reason, err := o.fault(t)
		if err != nil {
			return nil, err
		}
		if reason == "" {
			continue
		}
		by, ok, err := o.lastHarm(t)
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, loss{t.Name, by, reason})
		}
	}
	return list, nil
}

// fault says why a view cannot be read; empty: it can.
func (o *overlay) fault(view weir.Table) (string, error) {
	_, err := o.definition(view)
	var refused *planner.Error
	if errors.As(err, &refused) {
		return refused.Problems[0].Message, nil
	}
	return "", err
}

// lastHarm finds the change after which a view could not be read any more, by doing all
// of them once more; none: it never could.
func (o *overlay) lastHarm(view weir.Table) (by change, found bool, err error) {
	again := &overlay{now: slices.Clone(o.seen)}
	readable := func() (bool, error) {
		t, ok := again.find(view.Name)
		if !ok || t.SQL != view.SQL {
			return false, nil
		}
		reason, err := again.fault(t)
		return reason == "", err
	}
	was, err := readable()
	for _, c := range o.done {
		if err != nil {
			return by, false, err
		}
		again.apply(c)
		var is bool
		if is, err = readable(); was && !is {
			by, found = c, true
		}
		was = is
	}
	return by, found, err
}

// describeLoss says of the views that a change harms what they read, and what to do.
func (o *overlay) describeLoss(by change, lost []loss) (message, hint string) {
	names, drops := make([]string, len(lost)), make([]string, len(lost))
	for i, l := range lost {
		names[i], drops[i] = l.view, "DROP VIEW "+planner.QuoteName(l.view)
	}
	message = fmt.Sprintf("the view %s reads %s", names[0], by.name)
	if len(names) > 1 {
		message = fmt.Sprintf("the views %s read %s", strings.Join(names, ", "), by.name)
	}
	hint = strings.Join(drops, "; ")
	if _, again := o.find(by.name); again {
		return message + ", and could not read the new one: " + lost[0].reason, hint + ", and create it anew in the same script"
	}
	return message, hint + ", in the same script or before"
}

// commit writes the changes, all of them or none.
func (o *overlay) commit(ctx context.Context, tables job.Tables) error {
	var drop []string
	var create []weir.Table
	kept := map[string]bool{}
	for _, t := range o.seen {
		if now, ok := o.find(t.Name); ok && same(now, t) {
			kept[t.Name] = true
		} else {
			drop = append(drop, t.Name)
		}
	}
	for _, t := range o.now {
		if !kept[t.Name] {
			create = append(create, t)
		}
	}
	if len(drop)+len(create) == 0 {
		return nil
	}
	return tables.ChangeTables(ctx, o.seen, drop, create)
}

// same reports whether two entries are one: not dropped and created again.
func same(a, b weir.Table) bool {
	return a.Name == b.Name && a.SQL == b.SQL && a.CreatedAt.Equal(b.CreatedAt)
}

// commitTries is how often a request that another one overtook is worked out anew.
const commitTries = 5

// changeCatalog works a change out on an overlay and writes it.
func (s *Server) changeCatalog(ctx context.Context, work func(o *overlay) error) error {
	for try := 1; ; try++ {
		o, err := newOverlay(ctx, s.deps.Tables)
		if err != nil {
			return err
		}
		if err := work(o); err != nil {
			return err
		}
		if err := o.commit(ctx, s.deps.Tables); try == commitTries || !errors.Is(err, weir.ErrConflict) {
			return err
		}
	}
}

// isView reports whether an entry of the catalog is a view: tables have connectors.
func isView(t weir.Table) bool { return t.Connector == "" }

func kindOf(t weir.Table) string {
	if isView(t) {
		return "view"
	}
	return "table"
}

// entry makes the catalog's entry of a definition.
func entry(t *planner.Table, created time.Time) (weir.Table, error) {
	columns, err := json.Marshal(tableColumns(t))
	if err != nil {
		return weir.Table{}, err
	}
	return weir.Table{Name: t.Name, SQL: t.SQL, Columns: columns, Connector: t.Connector, CreatedAt: created}, nil
}

// checkTableName refuses names that no path could hold.
func checkTableName(name string) error {
	if name == "." || name == ".." {
		return fmt.Errorf("%w: a table named %q could not be reached by a path: choose another name", weir.ErrInvalid, name)
	}
	return nil
}

// refuseScript answers what is wrong with a script with another status than 422.
func refuseScript(status int, err error) error {
	var script *planner.Error
	if !errors.As(err, &script) {
		return err
	}
	p := scriptProblem(script)
	p.Status = status
	return &refusal{p}
}

// refuseLosses answers a script that harms views, with the places of what does it.
func refuseLosses(o *overlay, script []planner.CatalogStatement, lost []loss) error {
	var all planner.Error
	for i, st := range script {
		of := slices.DeleteFunc(slices.Clone(lost), func(l loss) bool { return l.by.cause != i })
		if len(of) == 0 {
			continue
		}
		message, hint := o.describeLoss(of[0].by, of)
		var one *planner.Error
		if errors.As(st.Refuse(planner.CodeName, hint, message), &one) {
			all.Problems = append(all.Problems, one.Problems...)
		}
	}
	return refuseScript(http.StatusConflict, &all)
}
