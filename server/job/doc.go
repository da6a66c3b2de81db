// Package job decides what runs where: one machine per job.
package job
