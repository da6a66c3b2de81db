package weir

import "time"

// A Lease makes its holder the only server that decides for the jobs of a shard
// until Expires; Term counts the holders and fences their writes.
type Lease struct {
	Shard   int
	Holder  string // a server's incarnation
	Term    int64
	Expires time.Time // by the metastore's clock
}
