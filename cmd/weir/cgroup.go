package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A limit is how many bytes of memory there are, and who says so.
type limit struct {
	bytes int64
	from  string
}

// none is the limit where nobody sets one.
var none = limit{bytes: math.MaxInt64}

// cgroupNone is what version 1 calls no limit: the largest number of pages, in bytes.
const cgroupNone = math.MaxInt64 >> 20 << 20

// cgroupLimit finds the smallest limit on this process's memory that its control groups,
// of either version, and those above them set; root is the machine's file system. What
// could not be read is beside it.
func cgroupLimit(root fs.FS) (limit, error) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil // no Linux
	}
	mounts, err2 := fs.ReadFile(root, "proc/self/mountinfo")
	if err := errors.Join(err, err2); err != nil {
		return none, err
	}
	least, errs := none, []error(nil)
	for line := range strings.Lines(string(mounts)) {
		m, ok := cgroupMountOf(line)
		if !ok {
			continue
		}
		for _, dir := range m.folders(m.group(string(own))) {
			for _, name := range m.files {
				l, err := readLimit(root, path.Join(dir, name))
				if err != nil {
					errs = append(errs, err)
				} else if l.bytes < least.bytes {
					least = l
				}
			}
		}
	}
	return least, errors.Join(errs...)
}

// A cgroupMount is where a hierarchy of control groups that limit memory is mounted.
type cgroupMount struct {
	v1          bool
	root, point string   // the group that is at the mount point
	files       []string // with limits, of each group
}

// cgroupMountOf reads a line of mountinfo; ok is false for other mounts.
func cgroupMountOf(line string) (m cgroupMount, ok bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 3 {
		return m, false
	}
	m.root, m.point = unescape(left[3]), unescape(left[4])
	switch {
	case right[0] == "cgroup2":
		m.files = []string{"memory.max", "memory.high"}
	case right[0] == "cgroup" && slices.Contains(strings.Split(right[2], ","), "memory"):
		m.v1, m.files = true, []string{"memory.limit_in_bytes"}
	default:
		return m, false
	}
	return m, true
}

// unescape undoes how mountinfo writes blanks and the like: \040.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, `\`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		code, err := strconv.ParseUint(after[:min(3, len(after))], 8, 8)
		if err != nil {
			b.WriteByte('\\')
			s = after
			continue
		}
		b.WriteByte(byte(code))
		s = after[3:]
	}
}

// group finds the process's own group of the mount's hierarchy in /proc/self/cgroup.
func (m cgroupMount) group(own string) string {
	for line := range strings.Lines(own) {
		part := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(part) != 3 {
			continue
		}
		if !m.v1 && part[0] == "0" && part[1] == "" || m.v1 && slices.Contains(strings.Split(part[1], ","), "memory") {
			return part[2]
		}
	}
	return ""
}

// folders are those of a group and of all above it that can be seen, below the machine's root. A
// container may see its own group as the root, and be told a name that others see: then
// what is mounted is its own.
func (m cgroupMount) folders(group string) []string {
	below, ok := strings.CutPrefix(group, strings.TrimSuffix(m.root, "/")+"/")
	if !ok || strings.HasPrefix(path.Clean(below), "..") {
		below = ""
	}
	point := strings.TrimPrefix(m.point, "/")
	list := []string{point}
	for at := path.Clean(below); at != "."; at = path.Dir(at) {
		list = append(list, path.Join(point, at))
	}
	return list
}

// readLimit reads a file with one number; there is no limit where it is missing.
func readLimit(root fs.FS, name string) (limit, error) {
	b, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	text := strings.TrimSpace(string(b))
	if text == "max" {
		return none, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return none, fmt.Errorf("/%s: %w", name, err)
	}
	if n >= cgroupNone {
		return none, nil
	}
	return limit{int64(n), "/" + name}, nil
}

// machineMemory is how much memory the machine has; 0 bytes: nobody knows.
func machineMemory(root fs.FS) (limit, error) {
	const name = "proc/meminfo"
	b, err := fs.ReadFile(root, name)
	if errors.Is(err, fs.ErrNotExist) {
		return limit{}, nil
	}
	if err != nil {
		return limit{}, err
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 3 && f[0] == "MemTotal:" && f[2] == "kB" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return limit{n << 10, "the machine's memory"}, nil
			}
		}
	}
	return limit{}, fmt.Errorf("/%s has no MemTotal", name)
}
