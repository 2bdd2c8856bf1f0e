module tinbox.dev/tests/suites/apiextensions

go 1.26.0

require k8s.io/apiextensions-apiserver v0.36.6
