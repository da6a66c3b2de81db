package blob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	probePrefix  = ".probe-"
	probeTimeout = 30 * time.Second
	// probeClearing bounds the removal of the object of a probe that failed.
	probeClearing = 5 * time.Second
	// leftAfter is how old what a process was making must be to count as left behind.
	leftAfter = 24 * time.Hour
)

// An Upload is a put that its process began and did not finish.
type Upload struct {
	Key   string // "": not known, as in a folder
	ID    string
	Began time.Time
}

// A Cleaner is a store in which puts of killed processes leave something behind that
// List does not show.
type Cleaner interface {
	// Unfinished lists the puts that began before then.
	Unfinished(ctx context.Context, before time.Time) ([]Upload, error)
	// Abandon removes what there is of one. One that is gone is no error.
	Abandon(ctx context.Context, u Upload) error
}

// Probe makes sure that the store does what Weir needs: write, read back, list, put if
// absent, delete, in this order, with an object of its own. What fails is named. It
// returns what the store lacks and Weir can do without, and clears what killed processes
// left a day ago or earlier.
func Probe(ctx context.Context, s Store) (warnings []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	key := probePrefix + strconv.FormatInt(time.Now().Unix(), 16) + "-" + strings.ToLower(rand.Text())
	warnings, err = probe(ctx, s, key)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeClearing)
		defer cancel()
		_ = s.Delete(ctx, key) // it may be there; a later probe tries again
		return nil, fmt.Errorf("storage probe: %w", err)
	}
	if warning := clearOld(ctx, s); warning != "" {
		warnings = append(warnings, warning)
	}
	return warnings, nil
}

func probe(ctx context.Context, s Store, key string) (warnings []string, err error) {
	if err := s.Put(ctx, key, strings.NewReader(key)); err != nil {
		return nil, fmt.Errorf("cannot write: %w", err)
	}
	r, err := s.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("cannot read what it has written: %w", err)
	}
	data, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("cannot read what it has written: %w", err)
	}
	if string(data) != key {
		return nil, fmt.Errorf("object %s reads back as %d other bytes; is a cache in between?", key, len(data))
	}
	listed := false
	if err := s.List(ctx, key, func(k string, _ int64) bool { listed = listed || k == key; return true }); err != nil {
		return nil, fmt.Errorf("cannot list: %w", err)
	}
	if !listed {
		return nil, fmt.Errorf("object %s was written and is not listed; Weir needs a store whose lists are current", key)
	}
	if err := probeCondition(ctx, s, key); err != nil {
		store, ok := s.(*S3)
		if !ok || store.conf.conditional {
			return nil, err
		}
		store.unconditional.Store(true)
		warnings = append(warnings, withoutCondition)
	}
	if err := s.Delete(ctx, key); err != nil {
		return nil, fmt.Errorf("cannot delete: %w", err)
	}
	return warnings, nil
}

// withoutCondition says what is lost (doc.go has the argument).
const withoutCondition = "the store has no conditional put (If-None-Match): that several writers of one object find out about each other is a matter of " +
	"luck; a process of a forgotten history may replace a manifest"

// probeCondition puts what is there already: the store has to refuse it.
func probeCondition(ctx context.Context, s Store, key string) error {
	const need = "or, where you accept that writers do not find out about each other, add conditional_put=false"
	err := s.PutIfAbsent(ctx, key, strings.NewReader(key))
	switch {
	case errors.Is(err, ErrExists):
		return nil
	case err == nil:
		return fmt.Errorf("the store replaces an object that was to be put only if absent (it ignores If-None-Match): take a store that has conditional puts, %s", need)
	case codeOf(err) == "NotImplemented":
		return fmt.Errorf("the store has no conditional put: %w: take one that has, %s", err, need)
	}
	return fmt.Errorf("cannot put if absent: %w", err)
}

// clearOld removes what processes that were killed left behind, so far as it can.
func clearOld(ctx context.Context, s Store) (warning string) {
	before := time.Now().Add(-leftAfter)
	var old []string
	err := s.List(ctx, probePrefix, func(key string, _ int64) bool {
		began, _, _ := strings.Cut(strings.TrimPrefix(key, probePrefix), "-")
		if at, err := strconv.ParseInt(began, 16, 64); err == nil && time.Unix(at, 0).Before(before) {
			old = append(old, key)
		}
		return true
	})
	for _, key := range old {
		err = errors.Join(err, s.Delete(ctx, key))
	}
	if c, ok := s.(Cleaner); ok {
		uploads, e := c.Unfinished(ctx, before)
		err = errors.Join(err, e)
		for _, u := range uploads {
			err = errors.Join(err, c.Abandon(ctx, u))
		}
	}
	if err != nil {
		return fmt.Sprintf("what killed processes left in storage stays: %v", err)
	}
	return ""
}
