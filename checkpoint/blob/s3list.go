package blob

import (
	"context"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// pageSize is how many keys are asked for at once.
const pageSize = 1000

// List implements Store.
func (s *S3) List(ctx context.Context, prefix string, f func(key string, size int64) bool) error {
	if err := checkPrefix(prefix); err != nil {
		return err
	}
	for after := ""; ; {
		page, err := s.page(ctx, prefix, after)
		if err != nil {
			return err
		}
		for _, o := range page {
			if err := ctx.Err(); err != nil {
				return interrupted(verbList, prefix, err, nil)
			}
			key := strings.TrimPrefix(o.Key, s.conf.prefix)
			if CheckKey(key) == nil && !f(key, o.Size) { // others are not ours
				return nil
			}
			after = o.Key
		}
		if len(page) < s.pageSize {
			return nil
		}
	}
}

// page returns the next objects behind the one named after.
func (s *S3) page(ctx context.Context, prefix, after string) (page []minio.ObjectInfo, err error) {
	owner := false
	err = s.call(ctx, verbList, prefix, func() error {
		return within(ctx, 3*s.answer, func(ctx context.Context) error {
			page = page[:0]
			list := s.core.ListObjectsIter(ctx, s.conf.bucket, minio.ListObjectsOptions{
				Prefix: s.object(prefix), Recursive: true, StartAfter: after, MaxKeys: s.pageSize, FetchOwner: &owner,
			})
			for o := range list {
				if o.Err != nil {
					return o.Err
				}
				if page = append(page, o); len(page) == s.pageSize {
					break
				}
			}
			return ctx.Err() // the list ends without a word when its context does
		})
	})
	return page, err
}

// Unfinished implements Cleaner: uploads of several parts that were never completed.
func (s *S3) Unfinished(ctx context.Context, before time.Time) ([]Upload, error) {
	var found []Upload
	for keyAfter, idAfter := "", ""; ; {
		var page minio.ListMultipartUploadsResult
		err := s.call(ctx, verbFind, "", func() error {
			return within(ctx, 3*s.answer, func(ctx context.Context) (err error) {
				page, err = s.core.ListMultipartUploads(ctx, s.conf.bucket, s.conf.prefix, keyAfter, idAfter, "", s.pageSize)
				return err
			})
		})
		if err != nil {
			return nil, err
		}
		for _, u := range page.Uploads {
			key, ours := strings.CutPrefix(u.Key, s.conf.prefix)
			if ours && CheckKey(key) == nil && u.Initiated.Before(before) {
				found = append(found, Upload{Key: key, ID: u.UploadID, Began: u.Initiated})
			}
		}
		if !page.IsTruncated || page.NextKeyMarker == "" {
			return found, nil
		}
		keyAfter, idAfter = page.NextKeyMarker, page.NextUploadIDMarker
	}
}

// Abandon implements Cleaner.
func (s *S3) Abandon(ctx context.Context, u Upload) error { return s.abort(ctx, u.Key, u.ID) }
