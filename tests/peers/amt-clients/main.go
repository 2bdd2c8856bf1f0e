// Clients of Intel AMT that others wrote, run against the simulated engine:
//
//	amt-clients intel ADDRESS http|https USER PASSWORD COMMAND...
//	amt-clients rufio ADDRESS http|https USER PASSWORD COMMAND...
//
// `intel` is Intel's go-wsman-messages, which knows only the standard ports; `rufio` is iamt, the
// client in Rufio's bmclib. Prints one line of JSON for each command: {"value": ...} or
// {"error": ...}.
package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman"
	amtboot "github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman/amt/boot"
	"github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman/amt/redirection"
	"github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman/cim/boot"
	"github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman/cim/power"
	"github.com/device-management-toolkit/go-wsman-messages/v2/pkg/wsman/client"
	"github.com/jacobweinstock/iamt"
)

const configuration = "Intel(r) AMT: Boot Configuration 0"

type run func(command string) (any, error)

func main() {
	if len(os.Args) < 7 {
		fmt.Fprintln(os.Stderr, "amt-clients CLIENT ADDRESS SCHEME USER PASSWORD COMMAND...")
		os.Exit(2)
	}
	address, scheme, user, password := os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	clients := map[string]func() run{
		"intel": func() run { return intel(address, scheme, user, password) },
		"rufio": func() run { return rufio(address, scheme, user, password) },
	}
	execute := clients[os.Args[1]]()
	for _, command := range os.Args[6:] {
		answer := map[string]any{}
		if value, err := execute(command); err != nil {
			answer["error"] = err.Error()
		} else {
			answer["value"] = value
		}
		line, _ := json.Marshal(answer)
		fmt.Println(string(line))
	}
}

func intel(address, scheme, user, password string) run {
	messages := wsman.NewMessages(client.Parameters{
		Target:            address,
		Username:          user,
		Password:          password,
		UseDigest:         true,
		UseTLS:            scheme == "https",
		SelfSignedAllowed: true,
	})
	return func(command string) (any, error) {
		name, argument, _ := strings.Cut(command, "=")
		switch name {
		case "state":
			answer, err := messages.CIM.AssociatedPowerManagementService.Get()
			return answer.Body.AssociatedPowerManagementService.PowerState, err
		case "states":
			_, err := messages.CIM.AssociatedPowerManagementService.Enumerate()
			return nil, err
		case "power":
			number, err := strconv.Atoi(argument)
			if err != nil {
				return nil, err
			}
			state := power.PowerState(number)
			answer, err := messages.CIM.PowerManagementService.RequestPowerStateChange(state)
			return answer.Body.RequestPowerStateChangeResponse.ReturnValue, err
		case "boot":
			return nil, bootFrom(messages, argument)
		case "https":
			return nil, bootFromURL(messages, argument)
		case "root":
			_, err := messages.AMT.PublicKeyManagementService.AddTrustedRootCertificate(argument)
			return nil, err
		case "roots":
			begun, err := messages.AMT.PublicKeyCertificate.Enumerate()
			if err != nil {
				return nil, err
			}
			context := begun.Body.EnumerateResponse.EnumerationContext
			page, err := messages.AMT.PublicKeyCertificate.Pull(context)
			roots := []string{}
			for _, item := range page.Body.PullResponse.PublicKeyCertificateItems {
				if item.TrustedRootCertificate {
					roots = append(roots, item.X509Certificate)
				}
			}
			return roots, err
		case "redirection":
			number, err := strconv.Atoi(argument)
			if err != nil {
				return nil, err
			}
			state := redirection.RequestedState(number)
			answer, err := messages.AMT.RedirectionService.RequestStateChange(state)
			return answer.Body.RequestStateChange_OUTPUT.ReturnValue, err
		case "uuid":
			answer, err := messages.CIM.ComputerSystemPackage.Get()
			return answer.Body.GetResponse.PlatformGUID, err
		case "versions":
			begun, err := messages.CIM.SoftwareIdentity.Enumerate()
			if err != nil {
				return nil, err
			}
			context := begun.Body.EnumerateResponse.EnumerationContext
			page, err := messages.CIM.SoftwareIdentity.Pull(context)
			versions := map[string]string{}
			for _, item := range page.Body.PullResponse.SoftwareIdentityItems {
				versions[item.InstanceID] = item.VersionString
			}
			return versions, err
		}
		return nil, fmt.Errorf("unknown command %q", command)
	}
}

// bootFrom sets the next boot in the order of Intel's own console.
func bootFrom(messages wsman.Messages, source string) error {
	read, err := messages.AMT.BootSettingData.Get()
	if err != nil {
		return err
	}
	if _, err = messages.CIM.BootConfigSetting.ChangeBootOrder(""); err != nil {
		return err
	}
	data := read.Body.BootSettingDataGetResponse
	if _, err = messages.AMT.BootSettingData.Put(amtboot.BootSettingDataRequest{
		BIOSSetup:    source == "",
		ElementName:  data.ElementName,
		InstanceID:   data.InstanceID,
		OwningEntity: data.OwningEntity,
	}); err != nil {
		return err
	}
	if _, err = messages.CIM.BootService.SetBootConfigRole(configuration, 1); err != nil {
		return err
	}
	if source == "" {
		return nil
	}
	_, err = messages.CIM.BootConfigSetting.ChangeBootOrder(boot.Source(source))
	return err
}

// bootFromURL sets the next boot to UEFI HTTPS, with Intel's own writer of the parameters.
func bootFromURL(messages wsman.Messages, url string) error {
	text, err := amtboot.NewStringParameter(amtboot.OCR_EFI_NETWORK_DEVICE_PATH, url)
	if err != nil {
		return err
	}
	parameters := []amtboot.TLVParameter{
		text,
		amtboot.NewBoolParameter(amtboot.OCR_HTTPS_CERT_SYNC_ROOT_CA, true),
	}
	array, err := amtboot.CreateTLVBuffer(parameters)
	if err != nil {
		return err
	}
	read, err := messages.AMT.BootSettingData.Get()
	if err != nil {
		return err
	}
	data := read.Body.BootSettingDataGetResponse
	if !data.UEFIHTTPSBootEnabled {
		return fmt.Errorf("UEFI HTTPS boot is off in the firmware setup")
	}
	if _, err = messages.CIM.BootConfigSetting.ChangeBootOrder(""); err != nil {
		return err
	}
	if _, err = messages.AMT.BootSettingData.Put(amtboot.BootSettingDataRequest{
		ElementName:             data.ElementName,
		ForcedProgressEvents:    true,
		InstanceID:              data.InstanceID,
		OwningEntity:            data.OwningEntity,
		UefiBootNumberOfParams:  len(parameters),
		UefiBootParametersArray: base64.StdEncoding.EncodeToString(array),
	}); err != nil {
		return err
	}
	if _, err = messages.CIM.BootService.SetBootConfigRole(configuration, 1); err != nil {
		return err
	}
	_, err = messages.CIM.BootConfigSetting.ChangeBootOrder(boot.OCRUEFIHTTPS)
	return err
}

func rufio(address, scheme, user, password string) run {
	port := uint32(16992)
	if scheme == "https" {
		port = 16993
	}
	machine := iamt.NewClient(address, user, password, iamt.WithScheme(scheme), iamt.WithPort(port))
	return func(command string) (any, error) {
		ctx := context.Background()
		switch command {
		case "open":
			return nil, machine.Open(ctx)
		case "state":
			return machine.IsPoweredOn(ctx)
		case "on":
			return nil, machine.PowerOn(ctx)
		case "off":
			return nil, machine.PowerOff(ctx)
		case "cycle":
			return nil, machine.PowerCycle(ctx)
		case "pxe":
			return nil, machine.SetPXE(ctx)
		}
		return nil, fmt.Errorf("unknown command %q", command)
	}
}
