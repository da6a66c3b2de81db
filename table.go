package weir

import (
	"encoding/json"
	"time"
)

// A Table is a catalog entry: the CREATE TABLE text a user gave.
type Table struct {
	Name      string
	SQL       string
	Columns   json.RawMessage // for lists: [{name,type}]
	Connector string
	CreatedAt time.Time
}
