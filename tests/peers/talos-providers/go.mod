// The release of Talos' bootstrap provider. Only its definitions are read: nothing is built.
module tinbox.dev/tests/peers/talos-providers

go 1.25.0

require github.com/siderolabs/cluster-api-bootstrap-provider-talos v0.6.12
