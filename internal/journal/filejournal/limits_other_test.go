//go:build !linux

package filejournal_test

const onLinux = false
