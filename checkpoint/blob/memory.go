package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// A Memory keeps objects in memory, for tests and for one process.
type Memory struct {
	mu struct {
		sync.Mutex
		objects map[string][]byte
	}
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	s := &Memory{}
	s.mu.objects = map[string][]byte{}
	return s
}

// Put implements Store.
func (s *Memory) Put(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, key, r, false)
}

// PutIfAbsent implements Store.
func (s *Memory) PutIfAbsent(ctx context.Context, key string, r io.Reader) error {
	return s.put(ctx, key, r, true)
}

func (s *Memory) put(ctx context.Context, key string, r io.Reader, absent bool) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	data, err := io.ReadAll(contextReader{ctx, r})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("put object %s: %w", key, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.mu.objects[key]; ok && absent {
		return fmt.Errorf("put object %s: %w", key, ErrExists)
	}
	s.mu.objects[key] = data
	return nil
}

func (s *Memory) object(ctx context.Context, key string) ([]byte, error) {
	if err := errors.Join(CheckKey(key), ctx.Err()); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.mu.objects[key]
	if !ok {
		return nil, notFound(key)
	}
	return data, nil
}

// Get implements Store.
func (s *Memory) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if err := checkRange(key, offset); err != nil {
		return nil, err
	}
	data, err := s.object(ctx, key)
	if err != nil {
		return nil, err
	}
	data = data[min(offset, int64(len(data))):]
	if length >= 0 {
		data = data[:min(length, int64(len(data)))]
	}
	return io.NopCloser(contextReader{ctx, bytes.NewReader(data)}), nil
}

// Stat implements Store.
func (s *Memory) Stat(ctx context.Context, key string) (int64, error) {
	data, err := s.object(ctx, key)
	return int64(len(data)), err
}

// List implements Store.
func (s *Memory) List(ctx context.Context, prefix string, f func(key string, size int64) bool) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	type object struct {
		key  string
		size int64
	}
	var found []object
	s.mu.Lock()
	for key, data := range s.mu.objects {
		if strings.HasPrefix(key, prefix) {
			found = append(found, object{key, int64(len(data))})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(found, func(a, b object) int { return strings.Compare(a.key, b.key) })
	for _, o := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !f(o.key, o.size) {
			return nil
		}
	}
	return nil
}

// Delete implements Store.
func (s *Memory) Delete(ctx context.Context, key string) error {
	if err := errors.Join(CheckKey(key), ctx.Err()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.objects, key)
	return nil
}
