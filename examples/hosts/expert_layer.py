"""A layer of a mixture of experts with the sizes of DeepSeek V3, from the logits of the router on, beside the same in PyTorch: `compare_pytorch.py --table expert_layer`.

    route           logits ─▶ weight, offsets, row_of_choice, token_of_row
    quantize        rows of x in the order of their experts, in e4m3 with scales of 1x128
    grouped         times the experts' first matrices, with scales of 128x128: gate and up, in bf16
    quantize        silu(gate) times up, in e4m3
    grouped         times the experts' second matrices
    combine_rows    the sums of each token's rows, by weight

PyTorch's grouped product takes a scale for each row; its elementwise steps are compiled where its compiler works.
"""

import torch

# Tokens, experts, experts of a token, and the sizes of a token outside and inside of an expert.
SIZES = 4096, 256, 8, 7168, 2048


def by_rows(x):
    """x in e4m3, and a scale for each row."""
    scale = x.abs().amax(-1).float() / 448
    return (x.float() / scale[:, None]).to(torch.float8_e4m3fn), scale


def gated_by_rows(x):
    """SwiGLU of the halves of x, quantised likewise."""
    gate, up = x.chunk(2, -1)
    return by_rows(torch.nn.functional.silu(gate) * up)


def weighted(z, weight):
    """The weighted sum of each token's rows."""
    return (z.float() * weight[..., None]).sum(1).to(z.dtype)


class Layer:
    """The layer: its tensors, the kernels of ours, and PyTorch's functions."""

    def __init__(self, gpu, kernel_of, sizes):
        self.tokens, self.experts, self.top, self.hidden, self.inner = sizes
        rows = self.tokens * self.top

        def kernel(name, *flags, **arguments):
            return kernel_of(gpu, name, [*flags, *(word for key, value in arguments.items() for word in (f"--{key}", str(value)))])

        blocks = {"dtype": "e4m3", "scales": "1x128,128x128", "groups": self.experts, "m": rows}
        self.steps = {
            "route": kernel("route", tokens=self.tokens, experts=self.experts, top=self.top),
            "gather": kernel("quantize", gather=self.tokens, m=rows, k=self.hidden),
            "up": kernel("grouped", n=2 * self.inner, k=self.hidden, **blocks),
            "swiglu": kernel("quantize", "--swiglu", m=rows, k=self.inner),
            "down": kernel("grouped", n=self.hidden, k=self.inner, **blocks),
            "combine": kernel("combine_rows", tokens=self.tokens, top=self.top, rows=rows, n=self.hidden),
        }
        self.functions, self.how = [by_rows, gated_by_rows, weighted], "eager"
        self.x = torch.randn(self.tokens, self.hidden, device="cuda", dtype=torch.bfloat16)
        self.logits = torch.randn(self.tokens, self.experts, device="cuda", dtype=torch.bfloat16)
        # Of ours with scales of 128x128, of PyTorch's with scales of rows.
        self.shapes = [(2 * self.inner, self.hidden), (self.hidden, self.inner)]
        self.weights = [torch.empty(self.experts, *shape, device="cuda", dtype=torch.float8_e4m3fn) for shape in self.shapes]
        self.scales = [torch.empty(self.experts, n // 128, k // 128, device="cuda") for n, k in self.shapes]
        self.their_weights = [torch.empty_like(w) for w in self.weights]
        self.their_scales = [torch.empty(self.experts, n, device="cuda") for n, _ in self.shapes]
        for part, (n, k) in enumerate(self.shapes):
            quantise = kernel("quantize", scales="128x128", m=n, k=k)
            for expert in range(self.experts):
                w = self.originals(expert)[part]
                quantise.launch(quantise.bind({"x": w, "y": self.weights[part][expert], "scale": self.scales[part][expert]}))
                self.their_weights[part][expert], self.their_scales[part][expert] = by_rows(w)
                torch.cuda.synchronize()
        self.bind(rows)

    def compile(self):
        """Compiles PyTorch's elementwise steps if that works."""
        try:
            compiled = [torch.compile(f) for f in self.functions]
            compiled[0](self.x)
            self.functions, self.how = compiled, "compiled"
        except Exception as error:  # noqa: BLE001 the compiler's errors have no common type
            print(f"torch.compile: {str(error).splitlines()[0]}", flush=True)

    def originals(self, expert):
        """The weights of an expert in bf16."""
        of = torch.Generator(device="cuda").manual_seed(expert)
        return [torch.randn(shape, generator=of, device="cuda", dtype=torch.bfloat16) * shape[1] ** -0.5 for shape in self.shapes]

    def bind(self, rows):
        """The tensors of each step by their names, and its parameters."""

        def empty(*shape, of=torch.bfloat16):
            return torch.empty(shape, device="cuda", dtype=of)

        numbers = {"counts": [self.experts], "offsets": [self.experts], "row_of_choice": [self.tokens, self.top], "token_of_row": [rows]}
        tables = {name: empty(*shape, of=torch.int32) for name, shape in numbers.items()}
        weight, offsets = empty(self.tokens, self.top, of=torch.float32), tables["offsets"]
        up, down, self.y = empty(rows, 2 * self.inner), empty(rows, self.hidden), empty(self.tokens, self.hidden)
        operands = [(empty(rows, k, of=torch.float8_e4m3fn), empty(k // 128, rows, of=torch.float32)) for _, k in self.shapes]
        (a, of_a), (b, of_b) = operands
        self.given = {
            "route": {"logits": self.logits, "weight": weight, **tables},
            "gather": {"x": self.x, "token_of_row": tables["token_of_row"], "y": a, "scale": of_a},
            "up": {"offsets": offsets, "a": a, "b": self.weights[0], "scale_a": of_a, "scale_b": self.scales[0], "c": up},
            "swiglu": {"x": up, "y": b, "scale": of_b},
            "down": {"offsets": offsets, "a": b, "b": self.weights[1], "scale_a": of_b, "scale_b": self.scales[1], "c": down},
            "combine": {"z": down, "row_of_choice": tables["row_of_choice"], "weight": weight, "y": self.y},
        }
        self.parameters = {}
        for name, kernel in self.steps.items():
            self.given[name]["workspace"] = empty(kernel.workspace_bytes, of=torch.uint8)
            self.parameters[name] = kernel.bind(self.given[name])

    def ours(self, steps=None):
        for name in steps or self.steps:
            self.steps[name].launch(self.parameters[name])

    def theirs(self):
        quantised, activated, combined = self.functions
        weight, choices = torch.topk(torch.softmax(self.logits.float(), -1), self.top)
        weight = weight / weight.sum(-1, keepdim=True)
        in_order, order = choices.flatten().sort(stable=True)
        experts = torch.arange(self.experts, device="cuda")
        offsets = torch.searchsorted(in_order, experts, right=True).to(torch.int32)
        # Tokens are quantised once, and their bytes gathered.
        tokens, (a, of_a) = order // self.top, quantised(self.x)
        a, of_a = a.view(torch.uint8)[tokens].view(torch.float8_e4m3fn), of_a[tokens]

        def product(a, of_a, part):
            b, of_b = self.their_weights[part].transpose(-2, -1), self.their_scales[part]
            return torch._scaled_grouped_mm(a, b, of_a, of_b, offs=offsets, out_dtype=torch.bfloat16, use_fast_accum=True)

        down = product(*activated(product(a, of_a, 0)), 1)
        row_of_choice = torch.empty_like(order)
        row_of_choice[order] = torch.arange(order.numel(), device="cuda")
        return combined(down[row_of_choice].view(self.tokens, self.top, self.hidden), weight)

    def exact(self, token):
        """What the layer gives for a token in double precision, with the weights as they were before they were quantised."""
        weight, choices = torch.topk(torch.softmax(self.logits[token].double(), -1), self.top)
        x, y = self.x[token].double(), 0
        for share, expert in zip(weight / weight.sum(), choices.tolist()):
            up, down = (w.double() for w in self.originals(expert))
            gate, value = (up @ x).split(self.inner)
            y = y + share * (down @ (torch.nn.functional.silu(gate) * value))
        return y


def compare(gpu, kernel_of, tools):
    """One line about the layer, and the times of its steps; whether it is as close to the exact one as PyTorch's."""
    graph, milliseconds = tools
    layer = Layer(gpu, kernel_of, SIZES)
    layer.compile()
    layer.ours()
    other = layer.theirs()
    errors = []
    # bf16 has few logits, and equal ones may be chosen otherwise in the last place: tokens whose last choice is one of two equal logits are left out.
    for token in range(0, layer.tokens, 300):
        last = torch.topk(layer.logits[token].float(), layer.top + 1).values[-2:]
        if last[0] == last[1]:
            continue
        exact = layer.exact(token)
        errors.append([((y[token].double() - exact).norm() / exact.norm()).item() for y in (layer.y, other)])
    mine, their = (max(of) for of in zip(*errors))
    passed = mine <= 1.2 * their and mine < 0.1
    parts = {name: milliseconds([graph([lambda name=name: layer.ours([name])])], 1)[0] for name in layer.steps}
    times = milliseconds([graph([layer.ours]), graph([layer.theirs])], 1)
    print(", ".join(f"{name} {ms:.4f} ms" for name, ms in parts.items()), flush=True)
    print(
        f"{'ok  ' if passed else 'FAIL'} expert layer, {layer.tokens} tokens: error {mine:.1e}, PyTorch ({layer.how}) {their:.1e}; {times[0]:.4f} ms,"
        f" PyTorch {times[1]:.4f} ms; {times[1] / times[0]:.3f} of its speed",
        flush=True,
    )
    return passed
