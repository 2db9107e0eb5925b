package filejournal

// SyncData is what the benchmarks compare with.
var SyncData = syncData
