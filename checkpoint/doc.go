// Package checkpoint is the checkpoint protocol.
package checkpoint
