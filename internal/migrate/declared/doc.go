// Package declared reads what is declared to croft already, and what croft compiled of it.
package declared
