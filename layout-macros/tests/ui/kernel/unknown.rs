use tilewright::kernel;

fn main() {
    kernel!(plan = "sgemm-maxas-128", trans = nm, arch = sm_90);
    kernel!(plan = "sgemm-maxas-128", trans = nn, arch = sm_91);
    kernel!(plan = "sgemm-maxas-128", trans = nn);
    kernel!(plan = "sgemm-maxas-128", tans = nn);
    kernel!(plan = "sgemm-maxas-128", trans = nn, trans = nt);
    kernel!(plan = 7, trans = nn);
}
