package diagnose

import (
	"path"
	"strings"
)

// isFortran reports whether a source file is written in Fortran. The advice then names directives
// and options instead of C functions.
func isFortran(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08", ".f18":
		return true
	}
	return false
}

// nonTemporal describes how to store without fetching the lines first in the language of a source
// file.
func nonTemporal(file string) string {
	if isFortran(file) {
		return "with a directive or compiler option for non-temporal stores"
	}
	return "__builtin_nontemporal_store"
}

// largePages describes how to use larger pages in the language of a source file.
func largePages(file string) string {
	if isFortran(file) {
		return "pages of 2 MiB (transparent huge pages, or an allocation from huge pages)"
	}
	return "pages of 2 MiB (madvise(…, MADV_HUGEPAGE) or an allocation from huge pages)"
}

// separation describes how to place data on separate lines in the language of a source file.
func separation(file string) string {
	if isFortran(file) {
		return "with padding"
	}
	return "with alignas(64) or padding"
}
