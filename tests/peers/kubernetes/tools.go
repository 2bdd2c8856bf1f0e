//go:build tools

// Package kubernetes pins the stock programs the box is tested against.
package kubernetes

import (
	_ "github.com/tinkerbell/cluster-api-provider-tinkerbell"
	_ "go.etcd.io/etcd/server/v3"
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
)
