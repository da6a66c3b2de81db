// Package docs holds the pages for users and the tests that run the examples in them.
// Command gen writes the parts of the pages that follow from the code.
package docs
