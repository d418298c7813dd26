#if canImport(Network)
    import Dispatch
    import Network
    import Synchronization

    /// What Apple's systems say of their network, by `NWPathMonitor`.
    public final class PathSource: NetworkStatusSource {
        private let monitor = NWPathMonitor()
        private let state: Mutex<NetworkStatus>
        private let observers = OrderedObservers<NetworkStatus>()

        /// Watches the paths from now on. Until the system has told of one, a network is assumed.
        public init() {
            state = Mutex(.assumed)
            monitor.pathUpdateHandler = { [weak self] path in self?.note(path) }
            monitor.start(queue: .global(qos: .utility))
        }

        deinit { monitor.cancel() }

        /// The present state.
        public var status: NetworkStatus { state.withLock { $0 } }

        /// Calls `body` with every new state.
        public func observe(_ body: @escaping @Sendable (NetworkStatus) -> Void) -> EventRegistration {
            observers.add(body)
        }

        private func note(_ path: NWPath) {
            let interfaces = path.availableInterfaces.map { interface in
                NetworkInterface(
                    index: interface.index,
                    name: interface.name,
                    isUp: true,
                    isRunning: true,
                    isLoopback: interface.type == .loopback
                )
            }
            let status = NetworkStatus(
                isConnected: path.status == .satisfied,
                isMetered: path.isExpensive || path.isConstrained,
                interfaces: interfaces.sorted { $0.index < $1.index }
            )
            let isNew = state.withLock { state in
                defer { state = status }
                return state != status
            }
            if isNew { observers.tell(status) }
        }
    }
#endif
