// The release whose CustomResourceDefinitions the box compiles in. Only its files are read:
// nothing is built.
module tinbox.dev/tests/peers/tinkerbell

go 1.25.0

require github.com/tinkerbell/tinkerbell v0.25.0
