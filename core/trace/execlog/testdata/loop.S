# The program of loop.log, which libexeclog.so of QEMU 7.2.0 wrote:
#   gcc -nostdlib -static -o loop loop.S
#   qemu-x86_64 -plugin libexeclog.so -d plugin -D loop.log ./loop
.globl _start
.data
x:	.quad 1, 2, 3, 4
.text
_start:
	lea x(%rip), %rdi
	mov $4, %ecx
1:	addq %rcx, (%rdi)
	movzbl 1(%rdi), %eax
	movups (%rdi), %xmm0
	push %rcx
	pop %rcx
	add $8, %rdi
	loop 1b
	mov $60, %eax
	xor %edi, %edi
	syscall
