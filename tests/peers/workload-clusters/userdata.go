package main

import (
	"bufio"
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/yaml"
)

// Files that Cluster API's bootstrap provider writes.
const (
	caFolder   = "/etc/kubernetes/pki/"
	initFile   = "/run/kubeadm/kubeadm.yaml"
	joinFile   = "/run/kubeadm/kubeadm-join-config.yaml"
	headerLine = "## template: jinja\n"
)

// authority is a certificate authority of a cluster.
type authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

// userData is what a machine does at its first boot.
type userData struct {
	providerID string
	// Address and port of the API server.
	endpoint string
	// ClusterConfiguration as text, for the first machine of a cluster.
	init *string
	// True for a machine that joins the control plane.
	controlPlane bool
	// Bootstrap token and hash of the authority, for a machine that joins.
	token string
	hash  string
	// Authorities, for machines of the control plane.
	cluster, etcd *authority
}

type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// document has the fields of ClusterConfiguration, InitConfiguration and JoinConfiguration in
// kubeadm.k8s.io/v1beta4 that this program needs.
type document struct {
	Kind                 string `json:"kind"`
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	NodeRegistration     struct {
		KubeletExtraArgs []argument `json:"kubeletExtraArgs"`
	} `json:"nodeRegistration"`
	ControlPlane *struct{} `json:"controlPlane"`
	Discovery    struct {
		BootstrapToken struct {
			Token             string   `json:"token"`
			APIServerEndpoint string   `json:"apiServerEndpoint"`
			CACertHashes      []string `json:"caCertHashes"`
		} `json:"bootstrapToken"`
	} `json:"discovery"`
}

// Parses user data: a cloud-config, or a MIME archive whose first part is one.
func parse(text string) (*userData, error) {
	text, err := firstPart(text)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(strings.TrimPrefix(text, headerLine), "#cloud-config") {
		return nil, errors.New("expected #cloud-config in the first line")
	}
	var config struct {
		WriteFiles []struct {
			Path    string `json:"path"`
			Content string `json:"content"`
		} `json:"write_files"`
		RunCommands []string `json:"runcmd"`
	}
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, file := range config.WriteFiles {
		files[file.Path] = file.Content
	}
	if !strings.Contains(strings.Join(config.RunCommands, "\n"), "kubeadm ") {
		return nil, errors.New("no command runs kubeadm")
	}
	data := &userData{}
	for _, name := range []string{initFile, joinFile} {
		if err := data.read(files[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	switch {
	case data.endpoint == "":
		return nil, errors.New("the kubeadm configuration has no endpoint")
	case data.providerID == "":
		return nil, errors.New("the kubelet has no argument provider-id")
	case data.init == nil && !data.controlPlane:
		return data, nil
	}
	if data.cluster, err = authorityOf(files, "ca"); err != nil {
		return nil, err
	}
	data.etcd, err = authorityOf(files, "etcd/ca")
	return data, err
}

// Reads a file with kubeadm's documents.
func (d *userData) read(text string) error {
	for _, part := range strings.Split(text, "\n---\n") {
		var document document
		if err := yaml.Unmarshal([]byte(part), &document); err != nil {
			return err
		}
		switch document.Kind {
		case "ClusterConfiguration":
			d.init, d.endpoint = &part, document.ControlPlaneEndpoint
		case "JoinConfiguration":
			join := document.Discovery.BootstrapToken
			d.controlPlane = document.ControlPlane != nil
			d.endpoint, d.token = join.APIServerEndpoint, join.Token
			d.hash = strings.Join(join.CACertHashes, " ")
		}
		for _, argument := range document.NodeRegistration.KubeletExtraArgs {
			if argument.Name == "provider-id" {
				d.providerID = argument.Value
			}
		}
	}
	return nil
}

func authorityOf(files map[string]string, name string) (*authority, error) {
	certificate, err := certs.DecodeCertPEM([]byte(files[caFolder+name+".crt"]))
	if err != nil {
		return nil, fmt.Errorf("%s.crt: %w", name, err)
	}
	key, err := certs.DecodePrivateKeyPEM([]byte(files[caFolder+name+".key"]))
	if err != nil {
		return nil, fmt.Errorf("%s.key: %w", name, err)
	}
	rsa, ok := key.(*rsa.PrivateKey)
	if certificate == nil || !ok {
		return nil, fmt.Errorf("%s: expected a certificate and an RSA key", name)
	}
	return &authority{certificate, rsa}, nil
}

// Returns the first part of a MIME archive; other text unchanged.
func firstPart(text string) (string, error) {
	if !strings.HasPrefix(text, "Content-Type: multipart/") &&
		!strings.HasPrefix(text, "MIME-Version:") {
		return text, nil
	}
	message, err := mail.ReadMessage(bufio.NewReader(bytes.NewBufferString(text)))
	if err != nil {
		return "", err
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return "", err
	}
	part, err := multipart.NewReader(message.Body, parameters["boundary"]).NextPart()
	if err != nil {
		return "", err
	}
	var body io.Reader = part
	if part.Header.Get("Content-Transfer-Encoding") == "base64" {
		body = base64.NewDecoder(base64.StdEncoding, part)
	}
	content, err := io.ReadAll(body)
	return string(content), err
}
