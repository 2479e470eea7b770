/**
 * Addresses that are not on the public internet: of this machine, of a network around it, or of nobody. What is reachable
 * there was never meant for a model.
 */
import { BlockList, isIP, isIPv4 } from "node:net"

/** An address that a name was resolved to. */
export interface Address {
  readonly address: string
  readonly family: number
}

/** IPv4 blocks that the registry of special-purpose addresses (IANA, RFC 6890) does not call global. */
const notPublic4: ReadonlyArray<readonly [string, number]> = [
  ["0.0.0.0", 8], // this network
  ["10.0.0.0", 8], // private
  ["100.64.0.0", 10], // carrier-grade translation
  ["127.0.0.0", 8], // loopback
  ["169.254.0.0", 16], // link-local, with the metadata services of clouds
  ["172.16.0.0", 12], // private
  ["192.0.0.0", 24], // protocol assignments
  ["192.0.2.0", 24], // documentation
  ["192.88.99.0", 24], // 6to4 relays
  ["192.168.0.0", 16], // private
  ["198.18.0.0", 15], // benchmarks
  ["198.51.100.0", 24], // documentation
  ["203.0.113.0", 24], // documentation
  ["224.0.0.0", 4], // multicast
  ["240.0.0.0", 4], // reserved, broadcast
]

/** Of IPv6 only 2000::/3 is global; these are blocks in it that are not, or that stand for an IPv4 address. */
const notPublic6: ReadonlyArray<readonly [string, number]> = [
  ["2001::", 23], // protocol assignments, Teredo
  ["2001:db8::", 32], // documentation
  ["2002::", 16], // 6to4
  ["3fff::", 20], // documentation
]

const blocks = (rules: ReadonlyArray<readonly [string, number]>, family: "ipv4" | "ipv6"): BlockList => {
  const list = new BlockList()
  for (const [network, prefix] of rules) list.addSubnet(network, prefix, family)
  return list
}

const refused4 = blocks(notPublic4, "ipv4")
const refused6 = blocks(notPublic6, "ipv6")
const global6 = blocks([["2000::", 3]], "ipv6")

/** Whether an address is on the public internet. */
export const isPublic = (address: string): boolean => {
  const known = isIP(address)
  if (known === 4) return !refused4.check(address, "ipv4")
  return known === 6 && global6.check(address, "ipv6") && !refused6.check(address, "ipv6")
}

/**
 * Whether an address may be connected to: it is public, or in one of `allowed`, which are addresses and blocks such as
 * `10.1.0.0/16`.
 */
export const admits = (allowed: ReadonlyArray<string>): ((address: string) => boolean) => {
  const list = new BlockList()
  for (const entry of allowed) {
    const [network = "", prefix] = entry.split("/")
    const family = familyOf(network)
    if (prefix === undefined) list.addAddress(network, family)
    else list.addSubnet(network, Number(prefix), family)
  }
  return (address) => isPublic(address) || (isIP(address) !== 0 && list.check(address, familyOf(address)))
}

const familyOf = (address: string): "ipv4" | "ipv6" => (isIPv4(address) ? "ipv4" : "ipv6")
