// Package source is what migrate reads: objects and values files, field by field, with the
// account of what became of each field. Of every field something is said; of one that
// nothing was said of, the account says that.
package source
