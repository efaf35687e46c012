// Package integration holds the tests that look at the module as a whole.
package integration
