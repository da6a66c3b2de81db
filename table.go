package weir

import (
	"encoding/json"
	"time"
)

// A Table is a catalog entry, a table or a view: the CREATE text a user gave.
type Table struct {
	Name      string
	SQL       string
	Columns   json.RawMessage // for lists: [{name,type,not_null,computed?}]
	Connector string          // empty: a view
	CreatedAt time.Time
}
