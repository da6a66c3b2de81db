package killpoint

// A Role is who passes a point.
type Role string

// The roles.
const (
	Server Role = "server"
	Worker Role = "worker"
	Both   Role = "both"
)

// A Point is a moment at which a process may die.
type Point struct {
	Name string
	Role Role
}

// Points lists all points in the order in which a checkpoint passes them; those of
// aborts and of clean-up come last.
func Points() []Point {
	return []Point{
		{"before-begin", Server}, // the row
		{"after-begin", Server},
		{"before-trigger", Server},
		{"after-trigger", Server},
		{"before-take", Worker}, // of a trigger, into the sources' mailboxes
		{"after-take", Worker},
		{"before-seal", Worker}, // of a sink's segment
		{"after-seal", Worker},
		{"before-barrier", Worker},
		{"between-barriers", Worker}, // one channel has it, the next has not
		{"after-barrier", Worker},
		{"before-cut", Worker},
		{"after-cut", Worker},
		{"before-upload", Worker},
		{"within-put", Both}, // the bytes are written, the object has no name
		{"after-upload", Worker},
		{"before-ack", Worker}, // handed to the server
		{"after-ack", Worker},
		{"before-manifest", Server},
		{"after-manifest", Server},
		{"before-decision", Server},
		{"after-decision", Server},
		{"before-notify", Server},
		{"after-notify", Server},
		{"before-commit", Worker},
		{"before-publish", Worker}, // of one segment
		{"after-publish", Worker},
		{"before-mark", Worker}, // all segments are published, none is marked so
		{"after-mark", Worker},
		{"after-commit", Worker},
		{"before-confirm", Worker}, // handed to the server
		{"after-confirm", Worker},
		{"before-close", Server}, // of the commits
		{"after-close", Server},
		{"before-commit-only", Worker}, // for an attempt that is over
		{"after-commit-only", Worker},
		{"before-abort", Server},
		{"after-abort", Server},
		{"before-discard", Server}, // the rows
		{"after-discard", Server},
		{"before-delete", Server}, // of one object
		{"after-delete", Server},
	}
}
