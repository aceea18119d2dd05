// A mixture-of-experts layer that trains, forward and backward by hand: see layer.h for the layer
// and permutation.h for the operators in it.
//
//   moe_layer           trains it on one rank and on four; fails unless the loss falls and both
//   runs
//                       agree
//   moe_layer --check   compares every gradient with finite differences
//
// The task: to answer each of 32 words with the vector that belongs to it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

#include "layer.h"

namespace {

constexpr Sizes kSizes{
    .num_tokens = 128, .top_k = 4, .num_experts = 16, .hidden_size = 16, .expert_size = 32};
constexpr int64_t kNumWords = 32;
constexpr int kNumSteps = 50;
constexpr double kLearningRate = 0.5;
constexpr uint32_t kSeed = 1;

template <class Real>
struct Model {
  Matrix<Real> embedding{kNumWords, kSizes.hidden_size};
  Weights<Real> weights{kSizes};

  std::vector<Matrix<Real>*> matrices() {
    return {&embedding, &weights.router, &weights.up, &weights.down};
  }
};

template <class Real>
struct Task {
  std::vector<int64_t> words;  // [T]
  Matrix<Real> answers{kNumWords, kSizes.hidden_size};
};

// Uniform in [-scale, scale], of the same bits on every machine.
template <class Real>
void fill(Matrix<Real>& matrix, double scale, std::mt19937& random) {
  for (Real& x : matrix.values())
    x = static_cast<Real>(scale * (static_cast<double>(random()) / 0x1p31 - 1));
}

template <class Real>
Model<Real> make_model(std::mt19937& random) {
  Model<Real> model;
  fill(model.embedding, 1.7, random);
  fill(model.weights.router, 1.0, random);
  fill(model.weights.up, 0.5, random);
  fill(model.weights.down, 0.3, random);
  return model;
}

template <class Real>
Task<Real> make_task(std::mt19937& random) {
  Task<Real> task;
  for (int64_t t = 0; t < kSizes.num_tokens; ++t) task.words.push_back(random() % kNumWords);
  fill(task.answers, 1, random);
  return task;
}

// Row t is the table's row words[t].
template <class Real>
Matrix<Real> look_up(const Matrix<Real>& table, const std::vector<int64_t>& words) {
  Matrix<Real> rows(std::ssize(words), table.num_cols());
  for (int64_t t = 0; t < rows.num_rows(); ++t) {
    for (int64_t h = 0; h < rows.num_cols(); ++h) rows(t, h) = table(words[t], h);
  }
  return rows;
}

template <class Real>
void look_up_backward(const Matrix<Real>& rows_grad, const std::vector<int64_t>& words,
                      Matrix<Real>& table_grad) {
  for (int64_t t = 0; t < rows_grad.num_rows(); ++t) {
    for (int64_t h = 0; h < rows_grad.num_cols(); ++h) table_grad(words[t], h) += rows_grad(t, h);
  }
}

template <class Real>
struct Loss {
  Real value = 0;
  Matrix<Real> out_grad;
};

// Half the squared distance from the answers, averaged over the tokens.
template <class Real>
Loss<Real> loss_of(const Matrix<Real>& out, const Task<Real>& task) {
  Loss<Real> loss{0, look_up(task.answers, task.words)};
  for (size_t i = 0; i < out.values().size(); ++i) {
    Real& grad = loss.out_grad.values()[i];
    grad = (out.values()[i] - grad) / static_cast<Real>(kSizes.num_tokens);
    loss.value += grad * grad * static_cast<Real>(kSizes.num_tokens) / 2;
  }
  return loss;
}

// The loss, and the gradients of all weights in `grad`.
template <class Real>
Real forward_backward(const Model<Real>& model, const Task<Real>& task,
                      const std::vector<int32_t>& experts, int64_t num_ranks, Model<Real>& grad) {
  Layer<Real> layer(model.weights, num_ranks);
  const Matrix<Real> out = layer.forward(look_up(model.embedding, task.words), experts);
  const Loss<Real> loss = loss_of(out, task);
  grad = {};
  look_up_backward(layer.backward(loss.out_grad, grad.weights), task.words, grad.embedding);
  return loss.value;
}

template <class Real>
std::vector<int32_t> route(const Model<Real>& model, const Task<Real>& task) {
  return Layer<Real>(model.weights, 1).route(look_up(model.embedding, task.words), kSizes.top_k);
}

void descend(Model<float>& model, Model<float>& grad) {
  const auto matrices = model.matrices(), grads = grad.matrices();
  for (size_t m = 0; m < matrices.size(); ++m) {
    for (size_t i = 0; i < matrices[m]->values().size(); ++i) {
      matrices[m]->values()[i] -= static_cast<float>(kLearningRate) * grads[m]->values()[i];
    }
  }
}

// Trains on one rank and on four side by side. Which experts a token goes to is a jump: where two
// are almost equal, the last bit of a sum decides. So the one-rank run chooses for both.
int train() {
  std::mt19937 random(kSeed);
  const Task<float> task = make_task<float>(random);
  Model<float> one = make_model<float>(random), four = one, grad;
  float first = 0, last = 0;
  double difference = 0;
  for (int step = 0; step < kNumSteps; ++step) {
    const std::vector<int32_t> experts = route(one, task);
    last = forward_backward(one, task, experts, 1, grad);
    descend(one, grad);
    const float loss = forward_backward(four, task, experts, 4, grad);
    descend(four, grad);
    if (step == 0) first = last;
    difference = std::max(difference, std::abs(static_cast<double>(loss) / last - 1));
    std::printf("step %2d: loss %.7f on one rank, %.7f on four\n", step, last, loss);
  }
  const bool falls = last < 0.5f * first, agree = difference < 1e-5;
  std::printf("the loss %s, the runs %s: at most %.1e apart\n", falls ? "falls" : "DOES NOT FALL",
              agree ? "agree" : "DIFFER", difference);
  return falls && agree ? 0 : 1;
}

// d loss / d x by a central difference, the tokens' experts held.
template <class Loss>
double finite_difference(double& x, const Loss& loss) {
  constexpr double kStep = 1e-5;
  const double middle = x;
  x = middle + kStep;
  const double up = loss();
  x = middle - kStep;
  const double down = loss();
  x = middle;
  return (up - down) / (2 * kStep);
}

int check() {
  std::mt19937 random(kSeed);
  const Task<double> task = make_task<double>(random);
  Model<double> model = make_model<double>(random), grad, unused;
  const std::vector<int32_t> experts = route(model, task);
  forward_backward(model, task, experts, 4, grad);
  const char* const names[] = {"embedding", "router", "up", "down"};
  bool right = true;
  for (size_t m = 0; m < std::size(names); ++m) {
    std::vector<double>& values = model.matrices()[m]->values();
    double worst = 0, largest = 0;
    for (int sample = 0; sample < 64; ++sample) {
      const size_t i = random() % values.size();
      const double expected = finite_difference(
          values[i], [&] { return forward_backward(model, task, experts, 1, unused); });
      worst = std::max(worst, std::abs(grad.matrices()[m]->values()[i] - expected));
      largest = std::max(largest, std::abs(expected));
    }
    right = right && largest > 0 && worst <= 1e-7 * largest;
    std::printf("%s: gradients up to %.1e, at most %.1e from finite differences\n", names[m],
                largest, worst);
  }
  std::puts(right ? "the gradients are right" : "the gradients are WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return train();
  if (argc == 2 && std::string_view(argv[1]) == "--check") return check();
  std::fprintf(stderr, "usage: moe_layer [--check]\n");
  return 2;
}
