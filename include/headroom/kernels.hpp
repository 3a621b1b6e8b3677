#pragma once

#include <headroom/process_memory.hpp>
#include <headroom/stream.hpp>
#include <headroom/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

/// The arithmetic of a GPT and of its optimizer, each function one operation on a stream.
///
/// Every function checks dtypes, shapes and workspaces, throws std::logic_error before anything is enqueued, and never
/// blocks. Tensors are f32 unless said, n = rows = batch * sequence, and must stay alive until the operation completes.
/// Outputs are overwritten, but gradients of parameters (dw, dweight, dbias, dwte, dwpe) are ACCUMULATED. No body
/// allocates. Any number of threads may call and run kernels at once; the first GEMM of the process sets OpenBLAS to
/// one thread a call. Data that is wrong (a token beyond the vocabulary) throws InvalidInput on the stream.
namespace headroom::kernels {

/// Where a kernel goes: a stream, and the unit that it works for (-1: none). `stream` or `{stream, unit}` at the call.
struct Launch {
  Launch(StreamRef where, int for_unit = -1) noexcept : stream(where), unit(for_unit) {}      // NOLINT(*-explicit-*)
  Launch(const Stream& where, int for_unit = -1) noexcept : Launch(where.ref(), for_unit) {}  // NOLINT(*-explicit-*)
  StreamRef stream;
  int unit;
};

// Elementwise; any shape, empty included.
void fill(TensorView tensor, double value, Launch launch);                  ///< f32, f64 or i32.
void copy(TensorView source, TensorView destination, Launch launch);        ///< Same dtype (any) and count; no overlap.
void accumulate(TensorView source, TensorView destination, Launch launch);  ///< destination += source (f32 or bf16).
/// Between f32 and bf16 (to nearest even), or the same dtype; same count. The destination may begin where the source
/// does: in place, either way.
void cast(TensorView source, TensorView destination, Launch launch);

/// Normal numbers of a logical tensor of which `tensor` holds elements [first_index, first_index + numel): element i
/// depends on (key, stream, i) only, never on the shard. Philox4x32-10 (Salmon et al., SC 2011) and Box-Muller.
struct Normal {
  std::uint64_t key = 0, stream = 0;
  std::int64_t first_index = 0;
  double mean = 0, stddev = 1;
};
void fill_normal(TensorView tensor, const Normal& normal, Launch launch);

enum class Transpose : std::uint8_t { no, yes };

/// c[m,n] = alpha * op(a) * op(b) + beta * c with op(a)[m,k], op(b)[k,n]. c overlaps neither a nor b.
void gemm(TensorView a, Transpose ta, TensorView b, Transpose tb, TensorView c, float alpha, float beta, Launch launch);

/// y[n,out] = x[n,in] * w[in,out] + bias[out]: GPT-2's Conv1D layout.
void linear_forward(TensorView x, TensorView w, TensorView bias, TensorView y, Launch launch);
/// The same with residual[n,out] added; y may be residual.
void linear_residual_forward(TensorView x, TensorView w, TensorView bias, TensorView residual, TensorView y,
                             Launch launch);
/// dy[n,out], x[n,in], w[in,out] -> dx[n,in] (overwritten), dw[in,out] and dbias[out] (accumulated).
void linear_backward(TensorView dy, TensorView x, TensorView w, TensorView dx, TensorView dw, TensorView dbias,
                     Launch launch);

/// out[n,C] = wte[token] + wpe[row % sequence]; tokens i32 [n], wte[V,C], wpe[P,C], sequence <= P divides n.
void embedding_forward(TensorView tokens, TensorView wte, TensorView wpe, TensorView out, std::int64_t sequence,
                       Launch launch);
/// dout[n,C] -> dwte[V,C], dwpe[P,C] (accumulated).
void embedding_backward(TensorView tokens, TensorView dout, TensorView dwte, TensorView dwpe, std::int64_t sequence,
                        Launch launch);

/// y[n,C] = (x - mean) * rstd * weight[C] + bias[C] over each row, eps 1e-5; keeps mean[n] and rstd[n] for backward.
void layer_norm_forward(TensorView x, TensorView weight, TensorView bias, TensorView y, TensorView mean,
                        TensorView rstd, Launch launch);
struct LayerNormInputs {
  TensorView x, weight, mean, rstd;
};
enum class Write : std::uint8_t { overwrite, accumulate };
/// dy[n,C] -> dx[n,C] (as `dx_write` says: accumulate adds it to the residual's gradient), dweight[C], dbias[C]
/// (accumulated). dx may be dy where it is overwritten.
void layer_norm_backward(const LayerNormInputs& inputs, TensorView dy, TensorView dx, Write dx_write,
                         TensorView dweight, TensorView dbias, Launch launch);

/// GPT-2's "gelu_new": 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). y may be x, dx may be dy; any shape.
void gelu_forward(TensorView x, TensorView y, Launch launch);
void gelu_backward(TensorView dy, TensorView x, TensorView dx, Launch launch);

/// Causal softmax(q k^T / sqrt(head_dim)) v, tiled over keys (Dao et al. 2022), no T x T anywhere. B, H, T are those of
/// lse[B,H,T], the log-sum-exp kept for backward; qkv[B*T,3C] holds q, k, v side by side, heads contiguous inside each;
/// out[B*T,C]. workspace: at least attention_workspace_bytes, any dtype, scratch; sequence and head_dim as T, C / H.
[[nodiscard]] std::size_t attention_workspace_bytes(std::int64_t sequence, std::int64_t head_dim);
void attention_forward(TensorView qkv, TensorView out, TensorView lse, TensorView workspace, Launch launch);
/// dout[B*T,C] -> dqkv[B*T,3C] (overwritten).
void attention_backward(TensorView dout, TensorView qkv, TensorView out, TensorView lse, TensorView dqkv,
                        TensorView workspace, Launch launch);

/// The tied output head and its loss, scale * sum over rows of (lse - logit[target]), logits = hidden[n,C] *
/// wte[V,C]^T, computed over chunks of the vocabulary. targets i32 [n]; lse[n] is written by forward and read by
/// backward.
struct CrossEntropy {
  TensorView hidden, wte, targets, lse, workspace;  ///< workspace: at least cross_entropy_workspace_bytes, scratch.
  double scale = 1;                                 ///< 1 / (tokens of the step over all ranks and micro-batches).
};
[[nodiscard]] std::size_t cross_entropy_workspace_bytes(std::int64_t rows, std::int64_t vocabulary);
/// Adds the loss to loss f64 [1].
void cross_entropy_forward(const CrossEntropy& inputs, TensorView loss, Launch launch);
/// dhidden[n,C] (overwritten), dwte[V,C] (accumulated).
void cross_entropy_backward(const CrossEntropy& inputs, TensorView dhidden, TensorView dwte, Launch launch);

/// What the end of a step computes on the device; a buffer of f64 [4] in this order. The first two are summed over
/// ranks.
struct StepScalars {
  double sum_squares = 0;    ///< Of all gradients; not finite: this step's update changes nothing.
  double loss = 0;           ///< Of this step.
  double applied_steps = 0;  ///< Updates made so far; the t of AdamW's bias correction.
  double skipped_steps = 0;  ///< Updates refused for a norm that was not finite.
};
/// sum f64 [1] += the squares of `tensor`, summed in f64 in a fixed order.
void sum_squares(TensorView tensor, TensorView sum, Launch launch);
/// Once a step, before its adamw calls: applied_steps + 1 where sum_squares is finite, else skipped_steps + 1.
void advance_step(TensorView scalars, Launch launch);

struct AdamWHyperparameters {
  double learning_rate = 3e-4, beta1 = 0.9, beta2 = 0.95, eps = 1e-8, weight_decay = 0.1;
  double clip = 1;  ///< Largest global norm, as torch.nn.utils.clip_grad_norm_; 0: off.
};
/// A range of parameters with its gradient and moments: torch.optim.AdamW's update, reading StepScalars when it runs.
/// `decay` false: no weight decay for this range. Changes nothing where sum_squares is not finite.
void adamw(TensorView parameter, TensorView gradient, TensorView exp_avg, TensorView exp_avg_sq, TensorView scalars,
           const AdamWHyperparameters& options, bool decay, Launch launch);

/// For process_memory: where OpenBLAS packs operands, a buffer for each thread that ever multiplied at the same time.
/// Buffers in use at the call are left out. The first call maps one more, untouched.
[[nodiscard]] std::vector<KnownRange> workspaces();

}  // namespace headroom::kernels
