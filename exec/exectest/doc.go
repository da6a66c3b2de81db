// Package exectest is test support for operators and whole jobs in one process.
//
// Attack runs a chain of operators in every way that the contract allows (one row at
// a time, all at once, a snapshot and a fresh instance after every row, one to three
// subtasks, outputs that refuse) and asks for one answer.
//
// Start runs a job of any plan in this process: its tasks over channels in memory, a
// coordinator of a few lines, snapshots in a blob store. It is what the real server
// and worker do, without processes, network and faults.
package exectest
