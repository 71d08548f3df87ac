//go:build !unix

package main

import "os"

// lockFile opens the file. This system has no lock that ends with its process, so two runs on one folder are not told apart here.
func lockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}
