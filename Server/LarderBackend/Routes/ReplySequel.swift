import LarderEngine
import LarderHTTP
import LarderTime
import Synchronization

/// What a custom route does with its reply and after it: a delay, and requests to other servers of this machine.
struct ReplySequel: Sendable {
    struct Request: Sendable {
        /// Its method and URL without user information and query, and its route.
        let name: String
        let address: UpstreamAddress
        let request: UpstreamRequest
        /// Counted from the reply, in the world's time.
        let delay: Duration
    }

    /// In the world's time.
    let delay: Duration
    let webhooks: [Request]

    /// The exchange to complete instead of the given one.
    func follow(_ exchange: Exchange, _ world: World, _ counter: WebhookCounter) -> Exchange {
        var following = exchange
        following.interceptor = { [self] reply in
            let clock = world.clock
            clock.wait(for: delay, of: exchange) {
                exchange.complete(reply)
                send(on: exchange.loop, clock, counter)
            }
        }
        return following
    }

    /// Sends the webhooks, without the delay of the reply.
    func send(on loop: EventLoop, _ clock: WorldClock, _ counter: WebhookCounter) {
        for webhook in webhooks { webhook.send(on: loop, clock, counter) }
    }
}

extension ReplySequel.Request {
    fileprivate func send(on loop: EventLoop, _ clock: WorldClock, _ counter: WebhookCounter) {
        // In a later turn of the loop than the one that writes the reply.
        let send: @Sendable () -> Void = {
            loop.execute { _ = loop.send(request, to: address, WebhookResult(name, counter)) }
        }
        if delay > .zero { clock.plan(after: delay, send) } else { send() }
    }
}

/// Counts the webhook when it is answered.
private final class WebhookResult: UpstreamReceiver {
    private let name: String
    private let counter: WebhookCounter
    private var status = 0

    init(_ name: String, _ counter: WebhookCounter) { (self.name, self.counter) = (name, counter) }

    func received(_ event: UpstreamEvent) {
        switch event {
        case .head(let head): status = head.status.code
        case .content: break
        case .end: counter.count(failure: status < 400 ? nil : "\(name) was answered with \(status)")
        case .failed(let failure): counter.count(failure: failure.sentence(about: name))
        }
    }
}
