// Package blob is an object store in five verbs.
package blob
